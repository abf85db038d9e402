package example.gradserve;

/**
 * The type of a tensor's elements. Servers may support more dtypes than this client: {@link Tensor} cannot hold these,
 * and other classes refer to dtypes by name.
 */
public enum DType {
    /** Booleans, a byte of 1 or 0. */
    BOOL("bool", "BOOL", 1, Kind.BOOLEAN, 1),
    /** Signed 8-bit integers. */
    INT8("int8", "I8", 1, Kind.INTEGER, 1),
    /** Unsigned 8-bit integers. */
    UINT8("uint8", "U8", 1, Kind.INTEGER, 1),
    /** Signed 16-bit integers. */
    INT16("int16", "I16", 2, Kind.INTEGER, 2),
    /** Signed 32-bit integers. */
    INT32("int32", "I32", 4, Kind.INTEGER, 1),
    /** Unsigned 32-bit integers. */
    UINT32("uint32", "U32", 4, Kind.INTEGER, 2),
    /** Signed 64-bit integers. */
    INT64("int64", "I64", 8, Kind.INTEGER, 1),
    /** IEEE 754 binary16 numbers: see {@link Float16}. */
    FLOAT16("float16", "F16", 2, Kind.FLOAT, 1),
    /** IEEE 754 binary32 numbers. */
    FLOAT32("float32", "F32", 4, Kind.FLOAT, 1),
    /** IEEE 754 binary64 numbers. */
    FLOAT64("float64", "F64", 8, Kind.FLOAT, 1),
    /** Complex numbers: two of {@link #FLOAT32}, the real part first. */
    COMPLEX64("complex64", "C64", 8, Kind.COMPLEX, 2),
    /** Complex numbers: two of {@link #FLOAT64}, the real part first. */
    COMPLEX128("complex128", "", 16, Kind.COMPLEX, 2);

    enum Kind { BOOLEAN, INTEGER, FLOAT, COMPLEX }

    private final String word;
    /** The name in the safetensors format; empty if the format lacks it. */
    final String spelling;
    private final int size;
    final Kind kind;
    /** The first opset with this dtype. */
    final int since;

    DType(String word, String spelling, int size, Kind kind, int since) {
        this.word = word;
        this.spelling = spelling;
        this.size = size;
        this.kind = kind;
        this.since = since;
    }

    /**
     * Returns the dtype with an API name.
     *
     * @param word a name such as {@code float32}
     * @return its dtype
     * @throws InputException if this client does not support it
     */
    public static DType of(String word) {
        for (DType dtype : values()) {
            if (dtype.word.equals(word)) {
                return dtype;
            }
        }
        throw new InputException("unsupported dtype '" + word + "': this client supports bool, int8, uint8, int16, "
            + "int32, uint32, int64, float16, float32, float64, complex64 and complex128");
    }

    static DType spelled(String spelling) {
        for (DType dtype : values()) {
            if (!spelling.isEmpty() && dtype.spelling.equals(spelling)) {
                return dtype;
            }
        }
        throw new InputException("unsupported dtype '" + spelling + "' in the safetensors file");
    }

    /** Returns the dtype of the numbers that an element is sent as: its own, or that of its parts if it is complex. */
    DType parts() {
        return switch (this) {
            case COMPLEX64 -> FLOAT32;
            case COMPLEX128 -> FLOAT64;
            default -> this;
        };
    }

    /** Returns the complex dtype whose parts have this dtype. */
    DType ofParts() {
        return switch (this) {
            case FLOAT32 -> COMPLEX64;
            case FLOAT64 -> COMPLEX128;
            default -> throw new InputException("no complex dtype has parts of dtype " + this);
        };
    }

    /**
     * Returns the API name.
     *
     * @return a name such as {@code float32}
     */
    public String word() {
        return word;
    }

    /**
     * Returns the size of an element.
     *
     * @return the size in bytes
     */
    public int size() {
        return size;
    }

    @Override
    public String toString() {
        return word;
    }
}
