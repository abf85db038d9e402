package main

import (
	"context"
	"fmt"

	gs "gradserve.example/gradserve"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	graph := gs.NewGraph()
	x, w := graph.Input("x"), graph.Parameter("w")
	graph.Sum(graph.Tanh(graph.Mul(x, w)))
	client, err := gs.NewClient("http://127.0.0.1:8000")
	check(err)
	answer, err := client.Gradients(context.Background(), graph, gs.Feeds{
		x: gs.Vector([]float64{1, 2}), w: gs.Vector([]float64{0.5, 0.5}),
	})
	check(err)
	gradient, err := answer.Gradients.Of(w)
	check(err)
	numbers, err := gs.Slice[float64](gradient)
	check(err)
	fmt.Printf("%.3f\n", numbers) // [0.786 0.840]
}
