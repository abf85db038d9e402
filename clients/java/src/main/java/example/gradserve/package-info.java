/**
 * The client of gradserve: write a computation {@linkplain example.gradserve.Graph graph}, send it with its
 * {@linkplain example.gradserve.Tensor tensors} by a {@linkplain example.gradserve.Client client}, and get gradients
 * back.
 *
 * <p>An op is a method of its first operand, or of the graph where it has none. What is optional is stated by a lambda:
 * {@code x.softmax(o -> o.axis(0))}, {@code client.gradients(graph, feeds, o -> o.of(loss).wrt(w))}. What is not stated
 * is not sent. {@link example.gradserve.Graph#op} appends any op by its name.
 *
 * <p>Failures are {@link example.gradserve.GradserveException}, by what one does about them.
 */
package example.gradserve;
