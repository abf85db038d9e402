package gradserve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	gs "gradserve.example/gradserve"
)

// answering is a server that gives one answer, whatever it is asked.
func answering(status int, body string) *httptest.Server {
	media := "application/json"
	if status >= 400 {
		media = "application/problem+json"
	}
	return httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		response.Header().Set("Content-Type", media)
		response.WriteHeader(status)
		_, _ = io.WriteString(response, body)
	}))
}

func Example() {
	server := answering(200, `{
		"values": [{"node": 3, "tensor": {"dtype": "float64", "shape": [], "data": [1.25]}}],
		"gradients": [{"node": 1, "tensor": {"dtype": "float64", "shape": [2], "data": [0.75, 0.5]}}],
		"disconnected": []}`)
	defer server.Close()

	graph := gs.NewGraph()
	x, w := graph.Input("x"), graph.Parameter("w")
	graph.Sum(graph.Tanh(graph.Mul(x, w))).Named("loss")

	client, err := gs.NewClient(server.URL)
	if err != nil {
		panic(err)
	}
	answer, err := client.Gradients(context.Background(), graph, gs.Feeds{
		x: gs.Vector([]float64{1, 2}),
		w: gs.Vector([]float64{0.5, 0.5}),
	})
	if err != nil {
		panic(err)
	}
	gradient, err := answer.Gradients.Of(w)
	if err != nil {
		panic(err)
	}
	fmt.Println(gs.Slice[float64](gradient))
	// Output: [0.75 0.5] <nil>
}

func ExampleGraph_Err() {
	graph, other := gs.NewGraph(), gs.NewGraph()
	graph.Mul(graph.Input("x"), other.Input("y"))
	fmt.Println(graph.Err())
	// Output: gradserve: node 1 (mul): operand 1: node 0 (input, "y") belongs to another graph
}

func ExampleRefusal() {
	server := answering(422, `{"type": "/docs/errors/missing_feed", "title": "A leaf is not fed", "status": 422,
		"code": "missing_feed", "detail": "there is no feed", "node": 0, "request_id": "1"}`)
	defer server.Close()
	client, err := gs.NewClient(server.URL)
	if err != nil {
		panic(err)
	}
	graph := gs.NewGraph()
	graph.Square(graph.Parameter("w"))

	_, err = client.Gradients(context.Background(), graph, nil)
	var refused *gs.GraphError
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, *refused.Node)
	}
	// Output: missing_feed 0
}
