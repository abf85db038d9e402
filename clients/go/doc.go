// Package gradserve is the client of gradserve in Go: write a computation graph, send it with its tensors, and get
// gradients back.
//
//	graph := gradserve.NewGraph()
//	x, w := graph.Input("x"), graph.Parameter("w")
//	graph.Sum(graph.Tanh(graph.Mul(x, w))).Named("loss")
//	answer, err := client.Gradients(ctx, graph, gradserve.Feeds{
//		x: gradserve.Vector([]float64{1, 2}),
//		w: gradserve.Vector([]float64{0.5, 0.5}),
//	})
//
// # Graphs
//
// Every op is a method of [Graph], which returns the handle of a node. Its operands and what is required come by
// position, all else in a struct of options; what is not set is not sent, and [Set] sets what is a pointer. [Graph.Op]
// appends any op by its name. What goes wrong is kept by the graph, and said by [Graph.Err] and by every call.
//
// # Tensors
//
// A [Tensor] shares the memory of the slice that it is made from, and [Slice] that of the tensor, wherever the machine
// allows it. Values are exact both ways. A [Resident] stands for a tensor that the server keeps.
//
// # Calls
//
// [Client] has all calls, on a [Graph] or on a [RegisteredGraph], which is sent once. Results are looked up by node, by
// name, or in order. A call is done within one deadline, that of its context or of [WithTimeout], over all of its tries;
// what keeps something is repeated only under a key of idempotency, which the client makes.
//
// # Errors
//
// Errors are told apart by errors.As, by what one does about them:
//
//	InputError               refused before anything was sent: mend the program
//	TransportError           there is no answer that could be read
//	    ConnectionError      none came, or half of one: look at the network, or try again
//	    MalformedError       something else came than was promised: look at what stands in between
//	    TooLargeError        it is longer than may be read: ask for less, or allow more
//	DeadlineError            the time was up, here or on the server: ask for less, or give more
//	Refusal                  the server's report, with all of its fields
//	    GraphError           the request is wrong, or more than one may ask: mend the graph, or what it is fed
//	    AuthenticationError  the key is missing, unknown, or not allowed this: get another
//	    RateError            the key has used up its rate: ask less often
//	    OverloadError        the server is busy, or about to stop: ask later
//	    NotFoundError        nothing is kept under this name or id: put or register it
//	    ConditionError       somebody else has written meanwhile: read again, then write
//	    StoreFullError       there is no room: delete something
//	    ServerError          a fault of the server's own: report it with its RequestID
//
// A call whose context was cancelled ends with context.Canceled.
package gradserve
