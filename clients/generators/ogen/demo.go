// Register a graph, request its gradients, and read an error, with the client that ogen made.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/ogen-go/ogen/ogenerrors"

	"example.com/demo/client"
)

// anonymous sends no API key.
type anonymous struct{}

func (anonymous) Key(context.Context, client.OperationName) (client.Key, error) {
	return client.Key{}, ogenerrors.ErrSkipClientSecurity
}

func node(op string, operands ...int64) client.GraphNode {
	return client.GraphNode{Op: op, Operands: operands}
}

func withAttrs(attrs client.Attrs, op string, operands ...int64) client.GraphNode {
	return client.GraphNode{Op: op, Operands: operands, Attrs: client.NewOptAttrs(attrs)}
}

// decay returns four steps of an exponential decay, as a function that a scan runs.
func decay() client.Graph {
	euler := client.GraphFunction{Outputs: []int64{4, 4}, Nodes: []client.GraphNode{
		node("input"), node("input"), node("mul", 0, 1),
		withAttrs(client.Attrs{Scalar: client.NewOptFloat64(-0.5)}, "mul_scalar", 2), node("add", 1, 3),
	}}
	steps := client.Attrs{Body: client.NewOptInt64(0), Carries: client.NewOptInt64(1), Length: client.NewOptInt64(4)}
	return client.Graph{Opset: client.NewOptInt64(2), Functions: []client.GraphFunction{euler}, Nodes: []client.GraphNode{
		node("parameter"), node("input"), withAttrs(steps, "scan", 0, 1),
		withAttrs(client.Attrs{Index: client.NewOptInt64(1)}, "get_output", 2), node("sum", 3),
	}}
}

func feed(node int64, shape []int64, data ...float64) client.Feed {
	tensor := client.Tensor{Dtype: "float64", Shape: shape, Data: data}
	return client.Feed{Node: node, Tensor: client.NewOptTensor(tensor)}
}

func main() {
	api, err := client.NewClient(os.Args[1], anonymous{})
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
	registration, err := api.RegisterGraph(ctx, &client.RegisterGraphRequest{Graph: graph}, client.RegisterGraphParams{})
	var params client.GradientsOfGraphParams
	switch registered := registration.(type) {
	case *client.RegisterGraphCreated:
		params.GraphID = registered.Response.GraphID
	case *client.RegisterGraphOK: // it was registered before
		params.GraphID = registered.Response.GraphID
	default:
		log.Fatal(err, registration)
	}
	answer, err := api.GradientsOfGraph(ctx, &client.RegisteredGradientsRequest{Feeds: feeds}, params)
	gradients, ok := answer.(*client.GradientsAnswerHeaders)
	if !ok {
		log.Fatal(err, answer)
	}
	gradient := gradients.Response.Gradients[0].Tensor.Data
	fmt.Println("gradient", gradient[0], gradient[1])

	// An unset data_b64 is sent as null. Other unset fields are omitted, so their nulls are written into the JSON.
	body, err := json.Marshal(&client.GradientsRequest{Graph: graph, Feeds: feeds})
	if err != nil {
		log.Fatal(err)
	}
	nulls := strings.NewReplacer(`"graph":`, `"of":null,"wrt":null,"graph":`,
		`"op":"mean"`, `"op":"mean","attrs":null,"name":null`).Replace(string(body))
	response, err := http.Post(os.Args[1]+"/v1/gradients", "application/json", strings.NewReader(nulls))
	if err != nil {
		log.Fatal(err)
	}
	var same client.GradientsAnswer
	if err := json.NewDecoder(response.Body).Decode(&same); err != nil {
		log.Fatal(err)
	}
	fmt.Println("nulls", same.Gradients[0].Tensor.Data[0], same.Gradients[0].Tensor.Data[1])

	start := []client.Feed{feed(0, []int64{}, 1), feed(1, []int64{}, 16)}
	looped, err := api.Gradients(ctx, &client.GradientsRequest{Graph: decay(), Feeds: start}, client.GradientsParams{})
	loop, ok := looped.(*client.GradientsAnswerHeaders)
	if !ok {
		log.Fatal(err, looped)
	}
	fmt.Println("functions", loop.Response.Values[0].Tensor.Data[0], loop.Response.Gradients[0].Tensor.Data[0])

	wrong := client.Graph{Nodes: []client.GraphNode{node("input"), node("matmul", 0, 7)}}
	refused, err := api.Gradients(ctx, &client.GradientsRequest{Graph: wrong}, client.GradientsParams{})
	problem, ok := refused.(*client.Refused422Headers)
	if !ok {
		log.Fatal(err, refused)
	}
	fmt.Println("refused", problem.Response.Code, problem.Response.Node.Value)
}
