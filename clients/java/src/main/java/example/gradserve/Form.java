package example.gradserve;

import java.util.Locale;

/** How tensors travel. Where none is stated, those of 4 KiB and more travel as safetensors, smaller ones as base64. */
public enum Form {
    /** Numbers of JSON, which everybody can read. */
    JSON,
    /** Bytes in base64 within JSON. */
    BASE64,
    /** A safetensors file. */
    SAFETENSORS;

    /** Tensors of so many bytes are files unless told otherwise. */
    private static final int LARGE = 4096;

    /**
     * How a tensor travels where nobody says.
     *
     * @param tensor any
     * @return the form that its size suggests
     */
    public static Form usualOf(Tensor tensor) {
        return usualOf(tensor.byteCount());
    }

    static Form usualOf(long bytes) {
        return bytes >= LARGE ? SAFETENSORS : BASE64;
    }

    /** Its word on the wire. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
