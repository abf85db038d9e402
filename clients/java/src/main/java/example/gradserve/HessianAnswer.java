package example.gradserve;

import java.util.Optional;

/** Values, gradients and Hessians. */
public final class HessianAnswer extends GradientsAnswer {
    private final Blocks hessian;
    private final Optional<HessianMatrix> matrix;

    HessianAnswer(AnswerReader reader) {
        super(reader);
        hessian = reader.blocks("hessian", "row", "column");
        matrix = reader.matrix("matrix");
    }

    /**
     * Returns the Hessians.
     *
     * @return blocks by pairs of nodes of {@code wrt}; none with {@link HessianLayout#MATRIX}
     */
    public Blocks hessian() {
        return hessian;
    }

    /**
     * Returns all blocks as one matrix.
     *
     * @return the matrix; empty unless the call had {@link HessianLayout#MATRIX}
     */
    public Optional<HessianMatrix> matrix() {
        return matrix;
    }
}
