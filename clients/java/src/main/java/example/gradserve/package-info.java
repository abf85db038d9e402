/**
 * The Java client of gradserve: build a computation {@linkplain example.gradserve.Graph graph}, send it with its
 * {@linkplain example.gradserve.Tensor tensors} through a {@linkplain example.gradserve.Client client}, and get
 * gradients back.
 *
 * <p>An op is a method of its first operand, or of the graph if it has none. Set options with a lambda:
 * {@code x.softmax(o -> o.axis(0))}, {@code client.gradients(graph, feeds, o -> o.of(loss).wrt(w))}. Options that you
 * do not set are not sent. {@link example.gradserve.Graph#op} appends any op by name.
 *
 * <p>Errors are subclasses of {@link example.gradserve.GradserveException}, grouped by how to handle them.
 */
package example.gradserve;
