// Package gradserve is the Go client of gradserve: build a computation graph, send it with its tensors, and get
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
// Every op is a method of [Graph] that returns the handle of a node. Operands and required attributes are positional
// arguments. Optional ones are fields of an options struct: fields that you do not set are not sent, and [Set] returns
// a pointer for optional fields. [Graph.Op] appends any op by name. The graph records the first error, which
// [Graph.Err] and every call return.
//
// # Tensors
//
// A [Tensor] shares the memory of the slice that it was created from, and [Slice] returns a view of a tensor's memory
// if alignment and byte order allow it. Values are exact in both directions. A [Resident] is a handle of a tensor
// stored on the server.
//
// # Calls
//
// [Client] has all calls, on a [Graph] or on a [RegisteredGraph], which is sent only once. Look up results by node, by
// name, or in order. All attempts of a call share one deadline, that of its context or of [WithTimeout]. A call that
// stores something is retried only under an idempotency key, which the client creates.
//
// # Errors
//
// Use errors.As to distinguish the error types, which are grouped by how to handle them:
//
//	InputError               rejected before it was sent: fix the program
//	TransportError           no readable response
//	    ConnectionError      no response, or an incomplete one: check the network, or retry
//	    MalformedError       not a gradserve response: look for a proxy in between
//	    TooLargeError        longer than the limit: request less, or raise the limit
//	DeadlineError            the timeout expired, here or on the server: request less, or raise the timeout
//	Refusal                  a problem report of the server, with all of its fields
//	    GraphError           an invalid request, or one beyond a limit: fix the graph or its feeds
//	    AuthenticationError  the API key is missing, unknown or lacks the permission: use another key
//	    RateError            the key has exceeded its rate limit: send fewer requests
//	    OverloadError        the server is busy or shutting down: retry later
//	    NotFoundError        nothing is stored under this name or id: put or register it
//	    ConditionError       another client has written it, or it is in use: read again, then write
//	    StoreFullError       the server's store is full: delete something
//	    ServerError          an internal error of the server: report it with its RequestID
//
// A call whose context is cancelled returns context.Canceled.
package gradserve
