package example.gradserve;

/** What stands for a node in a call: a tensor, or the handle of one that the server keeps. */
public sealed interface Value permits Tensor, Resident {}
