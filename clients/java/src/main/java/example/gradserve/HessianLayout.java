package example.gradserve;

import java.util.Locale;

/** The layout of a Hessian. */
public enum HessianLayout {
    /** A block for each pair of nodes of {@code wrt}. */
    BLOCKS,
    /** One square matrix over the elements of all nodes of {@code wrt}, which must have the same dtype. */
    MATRIX;

    /** Returns the API name. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
