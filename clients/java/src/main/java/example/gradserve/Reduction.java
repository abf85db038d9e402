package example.gradserve;

import java.util.Locale;

/** How the results of many examples are combined. */
public enum Reduction {
    /** Not combined. */
    NONE,
    /** The sum. */
    SUM,
    /** The mean. */
    MEAN;

    /** Returns the API name. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
