package example.gradserve;

import java.util.Locale;

/** How products and convolutions may read float32 on a GPU, the most exact first; a processor computes float32. */
public enum Precision {
    /** As IEEE 754 has it, all 24 bits of the significand. */
    FLOAT32,
    /** In two parts of TF32, by three products: about as exact as float32. */
    TF32X3,
    /** Rounded to 11 bits of the significand. */
    TF32,
    /** Rounded to 8 bits of the significand. */
    BFLOAT16;

    /** Its word on the wire. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
