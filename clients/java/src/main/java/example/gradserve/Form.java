package example.gradserve;

import java.util.Locale;

/** Encodings of tensors. By default, tensors of 4 KiB or more are sent as safetensors, smaller ones as base64. */
public enum Form {
    /** JSON numbers, which are readable. */
    JSON,
    /** Base64 of the bytes, in JSON. */
    BASE64,
    /** A safetensors file. */
    SAFETENSORS;

    /** The size from which tensors are sent as files by default. */
    private static final int LARGE = 4096;

    /**
     * Returns the default encoding of a tensor.
     *
     * @param tensor any tensor
     * @return the form for its size
     */
    public static Form usualOf(Tensor tensor) {
        return usualOf(tensor.byteCount());
    }

    static Form usualOf(long bytes) {
        return bytes >= LARGE ? SAFETENSORS : BASE64;
    }

    /** Returns the API name. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
