package example.gradserve;

/**
 * A Hessian as one square matrix over the elements of all nodes of {@code wrt}. Nodes are in the order of {@code wrt},
 * the elements of a node in row-major order.
 *
 * @param tensor the matrix
 * @param offsets the place of each node
 */
public record HessianMatrix(Tensor tensor, Results<NodeOffset> offsets) {}
