package example.gradserve;

/**
 * What a leaf would be fed.
 *
 * @param dtype by its word, which this client need not know
 * @param shape the extents
 */
public record TensorType(String dtype, long... shape) {
    /**
     * What a leaf would be fed.
     *
     * @param dtype what the elements are
     * @param shape the extents
     */
    public TensorType(DType dtype, long... shape) {
        this(dtype.word(), shape);
    }
}
