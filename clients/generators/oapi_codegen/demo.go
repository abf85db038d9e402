// Register a graph, request its gradients, and read an error, with the client that oapi-codegen made.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"example.com/demo/client"
)

func pointer[T any](value T) *T { return &value }

// node returns a node. Without operands, it points to a nil slice, which is sent as null.
func node(op string, operands ...int64) client.GraphNode {
	return client.GraphNode{Op: op, Operands: &operands}
}

func withAttrs(attrs client.Attrs, op string, operands ...int64) client.GraphNode {
	return client.GraphNode{Op: op, Operands: &operands, Attrs: &attrs}
}

// decay returns four steps of an exponential decay, as a function that a scan runs.
func decay() client.Graph {
	euler := client.GraphFunction{Outputs: []int64{4, 4}, Nodes: []client.GraphNode{
		node("input"), node("input"), node("mul", 0, 1),
		withAttrs(client.Attrs{Scalar: pointer(-0.5)}, "mul_scalar", 2), node("add", 1, 3),
	}}
	steps := client.Attrs{Body: pointer[int64](0), Carries: pointer[int64](1), Length: pointer[int64](4)}
	return client.Graph{Opset: pointer[int64](2), Functions: &[]client.GraphFunction{euler}, Nodes: []client.GraphNode{
		node("parameter"), node("input"), withAttrs(steps, "scan", 0, 1),
		withAttrs(client.Attrs{Index: pointer[int64](1)}, "get_output", 2), node("sum", 3),
	}}
}

func feed(node int64, shape []int64, data ...float64) client.Feed {
	return client.Feed{Node: node, Tensor: &client.Tensor{Dtype: "float64", Shape: shape, Data: &data}}
}

func main() {
	api, err := client.NewClientWithResponses(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	graph := client.Graph{Nodes: []client.GraphNode{
		node("input"), node("parameter"), node("input"), node("matmul", 0, 1), node("sub", 3, 2), node("square", 4),
		node("mean", 5),
	}}
	feeds := []client.Feed{
		feed(0, []int64{2, 2}, 1, 2, 3, 4), feed(1, []int64{2}, 1, 1), feed(2, []int64{2}, 2, 8),
	}
	registered, err := api.RegisterGraphWithResponse(ctx, nil, client.RegisterGraphRequest{Graph: graph})
	if err != nil {
		log.Fatal(err)
	}
	created := registered.JSON201
	if created == nil { // it was registered before
		created = registered.JSON200
	}
	answer, err := api.GradientsOfGraphWithResponse(ctx, created.GraphId, nil,
		client.RegisteredGradientsRequest{Feeds: &feeds})
	if err != nil || answer.JSON200 == nil {
		log.Fatal(err, answer)
	}
	gradient := *answer.JSON200.Gradients[0].Tensor.Data
	fmt.Println("gradient", gradient[0], gradient[1])

	// A pointer to a nil slice is sent as null. Nil pointers are omitted, so other nulls are written into the JSON.
	feeds[0].Tensor.DataB64 = new([]byte)
	body, err := json.Marshal(client.GradientsRequest{Graph: graph, Feeds: &feeds, Wrt: new([]int64)})
	if err != nil {
		log.Fatal(err)
	}
	nulls := strings.NewReplacer(`"wrt":null`, `"wrt":null,"of":null`,
		`"op":"mean"`, `"op":"mean","attrs":null,"name":null`).Replace(string(body))
	same, err := api.GradientsWithBodyWithResponse(ctx, nil, "application/json", strings.NewReader(nulls))
	if err != nil || same.JSON200 == nil {
		log.Fatal(err, same)
	}
	gradient = *same.JSON200.Gradients[0].Tensor.Data
	fmt.Println("nulls", gradient[0], gradient[1])

	start := []client.Feed{feed(0, []int64{}, 1), feed(1, []int64{}, 16)}
	loop, err := api.GradientsWithResponse(ctx, nil, client.GradientsRequest{Graph: decay(), Feeds: &start})
	if err != nil || loop.JSON200 == nil {
		log.Fatal(err, loop)
	}
	fmt.Println("functions", (*loop.JSON200.Values[0].Tensor.Data)[0], (*loop.JSON200.Gradients[0].Tensor.Data)[0])

	wrong := client.Graph{Nodes: []client.GraphNode{node("input"), node("matmul", 0, 7)}}
	refused, err := api.GradientsWithResponse(ctx, nil, client.GradientsRequest{Graph: wrong})
	if err != nil || refused.ApplicationproblemJSON422 == nil {
		log.Fatal(err, refused)
	}
	fmt.Println("refused", refused.ApplicationproblemJSON422.Code, *refused.ApplicationproblemJSON422.Node)
}
