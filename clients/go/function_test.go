package gradserve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func euler(f *Graph) []*Node {
	k, y := f.Input("k"), f.Input("y")
	next := f.Add(y, f.MulScalar(f.Mul(k, y), -0.5))
	return []*Node{next, next}
}

func ExampleGraph_Function() {
	graph := NewGraph()
	euler := graph.Function("euler", func(f *Graph) []*Node {
		k, y := f.Input("k"), f.Input("y")
		next := f.Add(y, f.MulScalar(f.Mul(k, y), -0.5))
		return []*Node{next, next} // carried, and stacked
	})
	k, y0 := graph.Parameter("k"), graph.Input("y0")
	steps := graph.Scan(euler, []*Node{k, y0}, ScanOptions{Carries: Set(1), Length: Set(4)})
	fmt.Println(graph.Sum(graph.GetOutput(steps, 1)), "of", euler)
	// Output: node 4 (sum) of function 0 ("euler")
}

func TestAFunctionIsAGraphWithinTheGraph(t *testing.T) {
	graph := NewGraph()
	step := graph.Function("euler", euler)
	last := graph.Scan(step, []*Node{graph.Parameter("k"), graph.Input("y0")}, ScanOptions{Carries: Set(1), Length: Set(4)})
	graph.Sum(graph.GetOutput(last, 1))
	if step.Index() != 0 || len(step.Parameters()) != 2 || len(step.Outputs()) != 2 {
		t.Error(step, step.Parameters(), step.Outputs())
	}
	wanted := `{"functions":[{"name":"euler","nodes":[{"name":"k","op":"input"},{"name":"y","op":"input"},` +
		`{"op":"mul","operands":[0,1]},{"attrs":{"scalar":-0.5},"op":"mul_scalar","operands":[2]},` +
		`{"op":"add","operands":[1,3]}],"outputs":[4,4]}],"nodes":[{"name":"k","op":"parameter"},` +
		`{"name":"y0","op":"input"},{"attrs":{"body":0,"carries":1,"length":4},"op":"scan","operands":[0,1]},` +
		`{"attrs":{"index":1},"op":"get_output","operands":[2]},{"op":"sum","operands":[3]}],"opset":2}`
	if got := nodesOf(t, graph); got != wanted {
		t.Error(got)
	}
	var read Graph
	if err := json.Unmarshal([]byte(wanted), &read); err != nil || nodesOf(t, &read) != wanted {
		t.Error(err, nodesOf(t, &read))
	}
	if read.Call(read.functions[0], nil); read.Err() != nil {
		t.Error(read.Err())
	}
}

func TestAFunctionMayMakeThoseThatItUses(t *testing.T) {
	graph := NewGraph()
	outer := graph.Function("", func(f *Graph) []*Node {
		inner := f.Function("", func(g *Graph) []*Node { return []*Node{g.Neg(g.Input(""))} })
		return []*Node{f.GetOutput(f.Call(inner, []*Node{f.Input("")}), 0)}
	})
	if outer.Index() != 1 || graph.Err() != nil {
		t.Error(outer, graph.Err())
	}
}

func TestFunctionsShareNeitherNodesNorGraphs(t *testing.T) {
	neg := func(f *Graph) []*Node { return []*Node{f.Neg(f.Input(""))} }
	for wanted, build := range map[string]func(*Graph, *Node){
		`function 0 ("f"): node 1 (add): operand 1: node 0 (input) belongs to another graph`: func(g *Graph, x *Node) {
			g.Function("f", func(f *Graph) []*Node { return []*Node{f.Add(f.Input(""), x)} })
		},
		"function 0: output 1: node 0 (input) belongs to another graph": func(g *Graph, x *Node) {
			g.Function("", func(f *Graph) []*Node { return []*Node{f.Input(""), x} })
		},
		"function 0: output 0: the node is nil": func(g *Graph, _ *Node) {
			g.Function("", func(*Graph) []*Node { return []*Node{nil} })
		},
		"node 1 (call): attribute body: function 0 belongs to another graph": func(g *Graph, x *Node) {
			g.Call(NewGraph().Function("", neg), []*Node{x})
		},
	} {
		graph := NewGraph()
		build(graph, graph.Input(""))
		if graph.Err() == nil || !strings.Contains(graph.Err().Error(), wanted) {
			t.Error(graph.Err())
		}
	}
	if _, err := json.Marshal(NewGraph().Function("", neg).nodes); err == nil {
		t.Error("the graph of a function is sent by itself")
	}
}
