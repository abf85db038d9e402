package example.gradserve;

import java.util.Locale;

/** What is made of many examples. */
public enum Reduction {
    /** Nothing: each is by itself. */
    NONE,
    /** Their sum. */
    SUM,
    /** Their mean. */
    MEAN;

    /** Its word on the wire. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
