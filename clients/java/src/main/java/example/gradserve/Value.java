package example.gradserve;

/** What stands for a node in a call: a tensor, or the handle of one that the server keeps, or its rows. */
public sealed interface Value permits Tensor, Resident, Rows {}
