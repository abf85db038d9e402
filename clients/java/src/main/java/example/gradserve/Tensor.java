package example.gradserve;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Arrays;

/**
 * An array with a dtype and a shape, in row-major order.
 *
 * <p>A tensor that is created from a Java array copies it. A tensor that is created from a buffer shares its memory: do
 * not write to it during a call. Views such as {@link #doubles()} share the tensor's memory and are read-only.
 */
public final class Tensor implements Value {
    /** The maximum number of axes of a NumPy array. */
    private static final int MOST_AXES = 64;
    /** Exclusive limit on the bytes of a tensor, with extents of 0 counted as 1. */
    private static final long MOST_BYTES = 1L << 53;

    private final DType dtype;
    private final long[] shape;
    /**
     * The elements, little-endian and read-only. Read them through a duplicate, because position and order belong to
     * the buffer.
     */
    private final ByteBuffer raw;

    private Tensor(DType dtype, long[] shape, ByteBuffer raw) {
        this.dtype = dtype;
        this.shape = shape.clone();
        this.raw = raw.slice().asReadOnlyBuffer();
        long wanted = byteCount(dtype, this.shape);
        if (wanted != raw.remaining()) {
            throw new InputException(this + " needs " + wanted + " bytes, got " + raw.remaining());
        }
        if (dtype.kind == DType.Kind.BOOLEAN) {
            checkBooleans();
        }
    }

    private void checkBooleans() {
        for (int place = 0; place < raw.limit(); place++) {
            if ((raw.get(place) & ~1) != 0) {
                throw new InputException("the bytes of a bool tensor must be 0 or 1");
            }
        }
    }

    /** Returns the number of bytes of a shape. */
    private static long byteCount(DType dtype, long[] shape) {
        if (shape.length > MOST_AXES) {
            throw new InputException("the shape has " + shape.length + " axes; the limit is " + MOST_AXES);
        }
        if (Arrays.stream(shape).anyMatch(extent -> extent < 0)) {
            throw new InputException("the extents of a shape must not be negative, got " + Arrays.toString(shape));
        }
        long total = dtype.size();
        for (long extent : shape) {
            long factor = Math.max(1, extent);
            if (total > (MOST_BYTES - 1) / factor) {
                throw new InputException(
                        "the shape "
                                + Arrays.toString(shape)
                                + " is too large: its nonzero extents give 2^53 bytes or more");
            }
            total *= factor;
        }
        return Arrays.stream(shape).anyMatch(extent -> extent == 0) ? 0 : total;
    }

    /**
     * Creates a float64 tensor without axes.
     *
     * @param number its only element
     * @return the tensor
     */
    public static Tensor scalar(double number) {
        return of(new double[] {number});
    }

    /**
     * Creates a float64 tensor with one axis.
     *
     * @param numbers its elements
     * @return the tensor
     */
    public static Tensor vector(double... numbers) {
        return of(numbers, numbers.length);
    }

    /**
     * Creates a float64 tensor.
     *
     * @param elements the elements in row-major order
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor of(double[] elements, long... shape) {
        ByteBuffer room = room(DType.FLOAT64, elements.length);
        room.asDoubleBuffer().put(elements);
        return new Tensor(DType.FLOAT64, shape, room);
    }

    /**
     * Creates a float32 tensor.
     *
     * @param elements the elements in row-major order
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor of(float[] elements, long... shape) {
        ByteBuffer room = room(DType.FLOAT32, elements.length);
        room.asFloatBuffer().put(elements);
        return new Tensor(DType.FLOAT32, shape, room);
    }

    /**
     * Creates an int64 tensor.
     *
     * @param elements the elements in row-major order
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor of(long[] elements, long... shape) {
        ByteBuffer room = room(DType.INT64, elements.length);
        room.asLongBuffer().put(elements);
        return new Tensor(DType.INT64, shape, room);
    }

    /**
     * Creates an int32 tensor. For uint32, use {@link #uint32}.
     *
     * @param elements the elements in row-major order
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor of(int[] elements, long... shape) {
        ByteBuffer room = room(DType.INT32, elements.length);
        room.asIntBuffer().put(elements);
        return new Tensor(DType.INT32, shape, room);
    }

    /**
     * Creates a uint32 tensor.
     *
     * @param bits the elements as bits, as {@link Integer#parseUnsignedInt} returns them
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor uint32(int[] bits, long... shape) {
        ByteBuffer room = room(DType.UINT32, bits.length);
        room.asIntBuffer().put(bits);
        return new Tensor(DType.UINT32, shape, room);
    }

    /**
     * Creates an int16 tensor. For float16, use {@link #float16}.
     *
     * @param elements the elements in row-major order
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor of(short[] elements, long... shape) {
        ByteBuffer room = room(DType.INT16, elements.length);
        room.asShortBuffer().put(elements);
        return new Tensor(DType.INT16, shape, room);
    }

    /**
     * Creates a complex64 tensor.
     *
     * @param parts the elements in row-major order, each as its real part followed by its imaginary part
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of parts is not twice the number of elements of the shape
     */
    public static Tensor complex64(float[] parts, long... shape) {
        ByteBuffer room = room(DType.FLOAT32, parts.length);
        room.asFloatBuffer().put(parts);
        return new Tensor(DType.COMPLEX64, shape, room);
    }

    /**
     * Creates a complex128 tensor.
     *
     * @param parts the elements in row-major order, each as its real part followed by its imaginary part
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of parts is not twice the number of elements of the shape
     */
    public static Tensor complex128(double[] parts, long... shape) {
        ByteBuffer room = room(DType.FLOAT64, parts.length);
        room.asDoubleBuffer().put(parts);
        return new Tensor(DType.COMPLEX128, shape, room);
    }

    /**
     * Creates an int8 tensor. For uint8, use {@link #wrap}.
     *
     * @param elements the elements in row-major order
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor of(byte[] elements, long... shape) {
        return new Tensor(DType.INT8, shape, ByteBuffer.wrap(elements.clone()));
    }

    /**
     * Creates a bool tensor.
     *
     * @param elements the elements in row-major order
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor of(boolean[] elements, long... shape) {
        byte[] bytes = new byte[elements.length];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (elements[i] ? 1 : 0);
        }
        return new Tensor(DType.BOOL, shape, ByteBuffer.wrap(bytes));
    }

    /**
     * Creates a float16 tensor.
     *
     * @param bits the elements as bits, as {@link Float16#fromDouble} returns them
     * @param shape the extents; none for a scalar
     * @return the tensor, with a copy of the elements
     * @throws InputException if the number of elements does not match the shape
     */
    public static Tensor float16(short[] bits, long... shape) {
        ByteBuffer room = room(DType.FLOAT16, bits.length);
        room.asShortBuffer().put(bits);
        return new Tensor(DType.FLOAT16, shape, room);
    }

    /**
     * Creates a tensor that shares the memory of a buffer.
     *
     * @param dtype the dtype of the elements
     * @param elements their bytes between position and limit, row-major and little-endian, regardless of the buffer's
     *     order
     * @param shape the extents; none for a scalar
     * @return the tensor
     * @throws InputException if the number of bytes does not match the shape
     */
    public static Tensor wrap(DType dtype, ByteBuffer elements, long... shape) {
        return new Tensor(dtype, shape, elements);
    }

    private static ByteBuffer room(DType dtype, int count) {
        if (count > Integer.MAX_VALUE / dtype.size()) {
            throw new InputException("a buffer cannot hold " + count + " elements of dtype " + dtype);
        }
        return ByteBuffer.allocate(count * dtype.size()).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Returns the dtype of the elements.
     *
     * @return the dtype
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * Returns the extents of all axes.
     *
     * @return a copy
     */
    public long[] shape() {
        return shape.clone();
    }

    /**
     * Returns the number of elements.
     *
     * @return the product of the extents
     */
    public int size() {
        return raw.limit() / dtype.size();
    }

    int byteCount() {
        return raw.limit();
    }

    /**
     * Returns the bytes of the elements.
     *
     * @return a read-only, little-endian view of this tensor's memory
     */
    public ByteBuffer bytes() {
        return raw.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Returns the elements of a float64 tensor.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public DoubleBuffer doubles() {
        return bytesOf(DType.FLOAT64).asDoubleBuffer();
    }

    /**
     * Returns the elements of a float32 tensor.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public FloatBuffer floats() {
        return bytesOf(DType.FLOAT32).asFloatBuffer();
    }

    /**
     * Returns the elements of an int64 tensor.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public LongBuffer longs() {
        return bytesOf(DType.INT64).asLongBuffer();
    }

    /**
     * Returns the elements of an int32 tensor.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public IntBuffer ints() {
        return bytesOf(DType.INT32).asIntBuffer();
    }

    /**
     * Returns the elements of an int16 tensor.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public ShortBuffer shorts() {
        return bytesOf(DType.INT16).asShortBuffer();
    }

    /**
     * Returns the elements of a complex64 tensor, each as its real part followed by its imaginary part.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public FloatBuffer complex64Parts() {
        return bytesOf(DType.COMPLEX64).asFloatBuffer();
    }

    /**
     * Returns the elements of a complex128 tensor, each as its real part followed by its imaginary part.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public DoubleBuffer complex128Parts() {
        return bytesOf(DType.COMPLEX128).asDoubleBuffer();
    }

    /**
     * Returns the real part of an element of a complex tensor.
     *
     * @param place the row-major position of the element
     * @return the exact number
     * @throws InputException if the tensor has another dtype
     * @throws IndexOutOfBoundsException if there is no such element
     */
    public double re(int place) {
        return partAt(2 * place);
    }

    /**
     * Returns the imaginary part of an element of a complex tensor.
     *
     * @param place the row-major position of the element
     * @return the exact number
     * @throws InputException if the tensor has another dtype
     * @throws IndexOutOfBoundsException if there is no such element
     */
    public double im(int place) {
        return partAt(2 * place + 1);
    }

    private double partAt(int place) {
        if (dtype.kind != DType.Kind.COMPLEX) {
            throw new InputException("the tensor holds " + dtype + " elements, not complex numbers");
        }
        return floatAt(bytes(), place);
    }

    /**
     * Returns the elements of a float16 tensor, as bits.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public ShortBuffer float16Bits() {
        return bytesOf(DType.FLOAT16).asShortBuffer();
    }

    /**
     * Returns the elements of a uint32 tensor, as bits. {@link #toLongs} returns them as numbers.
     *
     * @return a read-only view of this tensor's memory
     * @throws InputException if the tensor has another dtype
     */
    public IntBuffer uint32Bits() {
        return bytesOf(DType.UINT32).asIntBuffer();
    }

    private ByteBuffer bytesOf(DType wanted) {
        if (dtype != wanted) {
            throw new InputException("the tensor holds " + dtype + " elements, not " + wanted);
        }
        return bytes();
    }

    /**
     * Converts the elements to doubles, exactly, for every dtype except int64. A complex number is its real part
     * followed by its imaginary part.
     *
     * @return a new array
     * @throws InputException for int64, which a double cannot represent exactly
     */
    public double[] toDoubles() {
        if (dtype == DType.INT64) {
            throw new InputException("a double cannot represent every int64 exactly; use toLongs");
        }
        double[] elements = new double[numberCount()];
        ByteBuffer bytes = bytes();
        for (int place = 0; place < elements.length; place++) {
            elements[place] = hasFloats() ? floatAt(bytes, place) : wholeAt(bytes, place);
        }
        return elements;
    }

    /**
     * Converts the elements of integer and bool tensors to longs. Bools are 0 and 1.
     *
     * @return a new array
     * @throws InputException for floats and complex numbers
     */
    public long[] toLongs() {
        if (hasFloats()) {
            throw new InputException("the tensor holds " + dtype + " elements, not integers");
        }
        long[] elements = new long[size()];
        ByteBuffer bytes = bytes();
        for (int place = 0; place < elements.length; place++) {
            elements[place] = wholeAt(bytes, place);
        }
        return elements;
    }

    /**
     * Returns the only element, as {@link #toDoubles} does. For complex dtypes, use {@link #re re(0)} and
     * {@link #im im(0)}.
     *
     * @return a number
     * @throws InputException if there is not exactly one element, and for int64 and complex numbers
     */
    public double item() {
        if (size() != 1) {
            throw new InputException(this + " has " + size() + " elements, not one");
        }
        if (dtype.kind == DType.Kind.COMPLEX) {
            throw new InputException("a complex number cannot be returned as a double; use re(0) and im(0)");
        }
        return toDoubles()[0];
    }

    /** Returns how many numbers the elements are: two for each complex number. */
    int numberCount() {
        return raw.limit() / dtype.parts().size();
    }

    boolean hasFloats() {
        return dtype.parts().kind == DType.Kind.FLOAT;
    }

    double floatAt(ByteBuffer bytes, int place) {
        return switch (dtype.parts()) {
            case FLOAT16 -> Float16.toDouble(bytes.getShort(2 * place));
            case FLOAT32 -> bytes.getFloat(4 * place);
            default -> bytes.getDouble(8 * place);
        };
    }

    long wholeAt(ByteBuffer bytes, int place) {
        return switch (dtype) {
            case INT8 -> bytes.get(place);
            case INT16 -> bytes.getShort(2 * place);
            case INT32 -> bytes.getInt(4 * place);
            case UINT32 -> Integer.toUnsignedLong(bytes.getInt(4 * place));
            case INT64 -> bytes.getLong(8 * place);
            default -> Byte.toUnsignedLong(bytes.get(place));
        };
    }

    /**
     * Returns the tensor in the JSON form of the API.
     *
     * @param form {@link Form#JSON} for numbers if JSON can represent all of them; otherwise base64
     * @return the text
     */
    public String toJson(Form form) {
        return TensorJson.encoded(this, form).toString();
    }

    /**
     * Reads a tensor in the JSON form of the API, as numbers or base64.
     *
     * @param text a JSON object
     * @return the tensor
     * @throws MalformedAnswerException if the text is invalid
     */
    public static Tensor fromJson(String text) {
        return MalformedAnswerException.unless(() -> TensorJson.decoded(Json.object(text)));
    }

    /** Returns dtype and shape, without the elements. */
    @Override
    public String toString() {
        return dtype + Arrays.toString(shape);
    }
}
