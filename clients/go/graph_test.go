package gradserve

import (
	"bytes"
	"encoding/json"
	"go/format"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func nodesOf(t *testing.T, graph *Graph) string {
	t.Helper()
	text, err := json.Marshal(graph)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatIsNotSetIsNotSent(t *testing.T) {
	graph := NewGraph()
	x := graph.Input("")
	graph.Sum(x)
	graph.Sum(x, SumOptions{KeepDims: Set(false), Axes: []int{}})
	graph.LayerNorm(x, LayerNormOptions{Weight: x})
	graph.Op("new", []*Node{x}, Attrs{"a": nil, "b": []string(nil), "c": 0, "d": "", "e": (*Tensor)(nil)})
	wanted := `{"nodes":[{"op":"input"},{"op":"sum","operands":[0]},` +
		`{"attrs":{"axes":[],"keepdims":false},"op":"sum","operands":[0]},{"op":"layer_norm","operands":[0,0]},` +
		`{"attrs":{"c":0,"d":""},"op":"new","operands":[0]}]}`
	if got := nodesOf(t, graph); got != wanted {
		t.Error(got)
	}
}

func TestNumbersKeepAllOfTheirDigits(t *testing.T) {
	graph := NewGraph()
	graph.Full(FullOptions{Fill: int64(math.MaxInt64)})
	graph.Full(FullOptions{Fill: uint64(math.MaxUint64)})
	graph.Full(FullOptions{Fill: float32(0.1)})
	graph.Full(FullOptions{Fill: math.Copysign(0, -1)})
	graph.Arange(3)
	got := nodesOf(t, graph)
	numbers := []string{":9223372036854775807}", ":18446744073709551615}", ":0.10000000149011612}", ":-0.0}", ":3}"}
	for _, number := range numbers {
		if !strings.Contains(got, number) {
			t.Errorf("no %s in %s", number, got)
		}
	}
}

func TestTheFirstErrorIsKeptAndNamesTheOp(t *testing.T) {
	for name, build := range map[string]func(*Graph){
		"node 1 (mul): operand 1": func(g *Graph) { g.Mul(g.Input(""), nil) },
		"node 2 (cat): operand 1": func(g *Graph) { g.Cat([]*Node{g.Input(""), NewGraph().Input("")}) },
		"node 1 (layer_norm): operand 1": func(g *Graph) {
			x := g.Input("")
			g.LayerNorm(x, LayerNormOptions{Bias: x})
		},
		"node 1 (add_scalar): attribute scalar":       func(g *Graph) { g.AddScalar(g.Input(""), math.NaN()) },
		"node 0 (full): attribute fill":               func(g *Graph) { g.Full(FullOptions{Fill: "one"}) },
		"node 0 (new): attribute a":                   func(g *Graph) { g.Op("new", nil, Attrs{"a": []any{1, make(chan int)}}) },
		"node 0 (new): attribute b":                   func(g *Graph) { g.Op("new", nil, Attrs{"b": map[int]int{1: 2}}) },
		"node 0 (new): attribute c":                   func(g *Graph) { g.Op("new", nil, Attrs{"c": "\xff"}) },
		"node 0 (input): the name is not valid UTF-8": func(g *Graph) { g.Input("\xff") },
	} {
		graph := NewGraph()
		build(graph)
		kept := graph.Err()
		graph.Mul(nil, nil)
		if graph.Err() != kept || !isInput(kept) {
			t.Errorf("%s: %v", name, kept)
		}
		if name == "node 2 (cat): operand 1" {
			name = "(cat): operand 1"
		}
		if !strings.Contains(kept.Error(), name) {
			t.Errorf("%v does not say %s", kept, name)
		}
		if _, err := json.Marshal(graph); err == nil {
			t.Errorf("%s: the graph is written", name)
		}
	}
}

func TestWhatIsStatedIsCopied(t *testing.T) {
	graph, axes, elements := NewGraph(), []int{0}, []uint8{0}
	graph.Sum(graph.Input(""), SumOptions{Axes: axes})
	graph.Constant(Vector(elements))
	axes[0], elements[0] = 7, 0xef // "7" in base64
	if got := nodesOf(t, graph); strings.Contains(got, "7") || !strings.Contains(got, `"AA=="`) {
		t.Error(got)
	}
}

func TestNodesAreFound(t *testing.T) {
	graph := NewGraph()
	x := graph.Input("x")
	y := graph.Tanh(x).Named("y")
	graph.Tanh(y).Named("y")
	graph.Tanh(y)
	if found, err := graph.Find("x"); found != x || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := graph.Node(1); found != y || err != nil || found.Graph() != graph || found.Op() != "tanh" {
		t.Errorf("%v, %v", found, err)
	}
	for _, name := range []string{"y", "z", ""} {
		if _, err := graph.Find(name); !isInput(err) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, id := range []int{-1, 4} {
		if _, err := graph.Node(id); !isInput(err) {
			t.Errorf("%d: %v", id, err)
		}
	}
}

func TestGraphsAreReadAsTheyAreWritten(t *testing.T) {
	text := `{"nodes":[{"attrs":{"new":[1.50,{"a":null}],"whole":9007199254740993},"name":"x","op":"of_tomorrow"},` +
		`{"attrs":{"value":{"data_b64":"AQ==","dtype":"bool","shape":[1]}},"op":"constant"},` +
		`{"op":"add","operands":[0,1]}],"opset":2}`
	var graph Graph
	if err := json.Unmarshal([]byte(text), &graph); err != nil {
		t.Fatal(err)
	}
	if got := nodesOf(t, &graph); got != text {
		t.Error(got)
	}
	if x, err := graph.Find("x"); err != nil || graph.Tanh(x).ID() != 3 || graph.Err() != nil {
		t.Errorf("%v, %v", err, graph.Err())
	}
}

func TestAGraphSaysWhichOpsetItNeeds(t *testing.T) {
	words := Vector([]uint32{0, 1<<32 - 1})
	for wanted, written := range map[string][]func(*Graph){
		`"opset":2`: {
			func(g *Graph) { g.RandomKey(g.Input("seed")) },
			func(g *Graph) { g.Op("random_key", []*Node{g.Input("seed")}, nil) },
			func(g *Graph) { g.Parameter("key", ParameterOptions{DType: Uint32}) },
			func(g *Graph) { g.Cast(g.Input("x"), Uint32) },
			func(g *Graph) { g.Constant(words) },
			func(g *Graph) { g.Constant(Vector([]complex64{1i})) },
			func(g *Graph) { g.Cast(g.Input("x"), Int16) },
		},
		`"opset":1`: {func(g *Graph) { g.Opset = 1; g.Constant(words) }},
		`}]}`: {
			func(g *Graph) { g.Cast(g.Input("x"), Int32) },
			func(g *Graph) { g.Op("new", []*Node{g.Input("x")}, Attrs{"dtype": "float8", "word": "uint32"}) },
		},
	} {
		for _, write := range written {
			graph := NewGraph()
			write(graph)
			if got := nodesOf(t, graph); !strings.HasSuffix(got, wanted) && !strings.HasSuffix(got, wanted+"}") {
				t.Errorf("%s: %s", wanted, got)
			}
		}
	}
	kept := message{}
	graph := NewGraph()
	graph.RandomKey(graph.Input("seed"))
	if first := kept.graph(graph, 1); first["opset"] != nil {
		t.Errorf("the first node alone needs none: %v", first)
	}
}

func TestGraphsThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{
		`[]`, `{}`, `{"nodes": [1]}`, `{"nodes": [{"op": 1}]}`, `{"nodes": [{"op": "add", "operands": [0]}]}`,
		`{"nodes": [{"op": "x", "name": 1}]}`, `{"nodes": [{"op": "x", "attrs": []}]}`, `{"nodes": [], "opset": "1"}`,
		`{"nodes": [{"op": "x", "attrs": {"value": {"dtype": "new", "shape": []}}}]}`,
	} {
		if err := NewGraph().UnmarshalJSON([]byte(text)); !is[*MalformedError](err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The ops are written by a program that does not ask the formatter.
func TestAllFilesAreFormatted(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		formatted, err := format.Source(text)
		if err == nil && !bytes.Equal(text, formatted) {
			t.Errorf("%s is not as gofmt writes it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
