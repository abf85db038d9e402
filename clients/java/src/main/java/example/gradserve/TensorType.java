package example.gradserve;

/**
 * The dtype and shape of a leaf.
 *
 * @param dtype the name of the dtype, which this client need not know
 * @param shape the extents
 */
public record TensorType(String dtype, long... shape) {
    /**
     * Creates the type of a leaf.
     *
     * @param dtype the dtype of the elements
     * @param shape the extents
     */
    public TensorType(DType dtype, long... shape) {
        this(dtype.word(), shape);
    }
}
