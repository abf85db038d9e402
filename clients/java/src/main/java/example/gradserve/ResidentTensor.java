package example.gradserve;

/**
 * A resident tensor with its elements.
 *
 * @param handle the handle of this version
 * @param tensor its elements
 */
public record ResidentTensor(Resident handle, Tensor tensor) {}
