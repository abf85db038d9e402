// Register a graph, ask for its gradients, read a refusal: by what OpenAPI Generator made for Go.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	gradserve "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func node(op string, operands ...int64) gradserve.GraphNode {
	made := gradserve.NewGraphNode(op)
	made.Operands = operands
	return *made
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

	wrong := gradserve.NewGradientsRequest(*gradserve.NewGraph([]gradserve.GraphNode{node("input"), node("matmul", 0, 7)}))
	_, _, err = client.ComputeAPI.Gradients(ctx).GradientsRequest(*wrong).Execute()
	var refused *gradserve.GenericOpenAPIError
	if errors.As(err, &refused) {
		if problem, ok := refused.Model().(gradserve.Problem); ok {
			fmt.Println("refused", problem.Code, problem.GetNode())
		}
	}
}
