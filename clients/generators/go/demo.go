// Register a graph, ask for its gradients, read a refusal: by what OpenAPI Generator made for Go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	gradserve "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func node(op string, operands ...int64) gradserve.GraphNode {
	made := gradserve.NewGraphNode(op)
	made.Operands = operands
	return *made
}

func stated(attrs gradserve.Attrs, op string, operands ...int64) gradserve.GraphNode {
	made := node(op, operands...)
	made.SetAttrs(attrs)
	return made
}

// decay is four steps of one, as a function that a scan runs.
func decay() *gradserve.Graph {
	var half, steps, stack gradserve.Attrs
	half.SetScalar(-0.5)
	steps.SetBody(0)
	steps.SetCarries(1)
	steps.SetLength(4)
	stack.SetIndex(1)
	euler := gradserve.NewGraphFunction([]gradserve.GraphNode{
		node("input"), node("input"), node("mul", 0, 1), stated(half, "mul_scalar", 2), node("add", 1, 3),
	}, []int64{4, 4})
	made := gradserve.NewGraph([]gradserve.GraphNode{
		node("parameter"), node("input"), stated(steps, "scan", 0, 1), stated(stack, "get_output", 2), node("sum", 3),
	})
	made.SetOpset(2)
	made.SetFunctions([]gradserve.GraphFunction{*euler})
	return made
}

func feed(node int64, shape []int64, data ...float64) gradserve.Feed {
	tensor := gradserve.NewTensor("float64", shape)
	tensor.Data = data
	fed := gradserve.NewFeed(node)
	fed.SetTensor(*tensor)
	return *fed
}

func main() {
	configuration := gradserve.NewConfiguration()
	configuration.Servers = gradserve.ServerConfigurations{{URL: os.Args[1]}}
	client, ctx := gradserve.NewAPIClient(configuration), context.Background()

	graph := gradserve.NewGraph([]gradserve.GraphNode{
		node("input"), node("parameter"), node("input"), node("matmul", 0, 1), node("sub", 3, 2), node("square", 4),
		node("mean", 5),
	})
	feeds := []gradserve.Feed{
		feed(0, []int64{2, 2}, 1, 2, 3, 4), feed(1, []int64{2}, 1, 1), feed(2, []int64{2}, 2, 8),
	}
	registered, _, err := client.GraphsAPI.RegisterGraph(ctx).
		RegisterGraphRequest(*gradserve.NewRegisterGraphRequest(*graph)).Execute()
	if err != nil {
		log.Fatal(err)
	}
	request := gradserve.NewRegisteredGradientsRequest()
	request.Feeds = feeds
	answer, _, err := client.ComputeAPI.GradientsOfGraph(ctx, registered.GraphId).
		RegisteredGradientsRequest(*request).Execute()
	if err != nil {
		log.Fatal(err)
	}
	gradient := answer.Gradients[0].Tensor.Data
	fmt.Println("gradient", gradient[0], gradient[1])

	// The structs omit what is unset, so the nulls are written into their JSON.
	plain := gradserve.NewGradientsRequest(*graph)
	plain.Feeds = feeds
	body, err := json.Marshal(plain)
	if err != nil {
		log.Fatal(err)
	}
	nulls := strings.NewReplacer(`"graph":`, `"of":null,"wrt":null,"graph":`, `"data":`, `"data_b64":null,"data":`,
		`"op":"mean"`, `"op":"mean","attrs":null,"name":null`).Replace(string(body))
	response, err := http.Post(os.Args[1]+"/v1/gradients", "application/json", strings.NewReader(nulls))
	if err != nil {
		log.Fatal(err)
	}
	var same gradserve.GradientsAnswer
	if err := json.NewDecoder(response.Body).Decode(&same); err != nil {
		log.Fatal(err)
	}
	fmt.Println("nulls", same.Gradients[0].Tensor.Data[0], same.Gradients[0].Tensor.Data[1])

	looped := gradserve.NewGradientsRequest(*decay())
	looped.Feeds = []gradserve.Feed{feed(0, []int64{}, 1), feed(1, []int64{}, 16)}
	loop, _, err := client.ComputeAPI.Gradients(ctx).GradientsRequest(*looped).Execute()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("functions", loop.Values[0].Tensor.Data[0], loop.Gradients[0].Tensor.Data[0])

	wrong := gradserve.NewGradientsRequest(*gradserve.NewGraph([]gradserve.GraphNode{node("input"), node("matmul", 0, 7)}))
	_, _, err = client.ComputeAPI.Gradients(ctx).GradientsRequest(*wrong).Execute()
	var refused *gradserve.GenericOpenAPIError
	if errors.As(err, &refused) {
		if problem, ok := refused.Model().(gradserve.Problem); ok {
			fmt.Println("refused", problem.Code, problem.GetNode())
		}
	}
}
