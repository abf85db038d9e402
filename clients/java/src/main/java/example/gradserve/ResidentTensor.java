package example.gradserve;

/**
 * A resident tensor with its elements.
 *
 * @param handle of the version that came
 * @param tensor its elements
 */
public record ResidentTensor(Resident handle, Tensor tensor) {}
