package example.gradserve;

import java.util.Locale;

/**
 * The precision of float32 matrix products and convolutions on a GPU, most exact first. CPUs always compute in float32.
 */
public enum Precision {
    /** IEEE 754 float32: a significand of 24 bits. */
    FLOAT32,
    /** Three products of TF32 parts: about as exact as float32. */
    TF32X3,
    /** A significand of 11 bits. */
    TF32,
    /** A significand of 8 bits. */
    BFLOAT16;

    /** Returns the API name. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
