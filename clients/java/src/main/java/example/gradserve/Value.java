package example.gradserve;

/** A value that calls accept for a node: a tensor, the handle of a resident tensor, or its rows. */
public sealed interface Value permits Tensor, Resident, Rows {}
