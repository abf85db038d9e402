package gradserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const square = `{"values": [{"node": 1, "tensor": {"dtype": "float64", "shape": [], "data": [9]}}],
	"gradients": [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [6]}}],
	"disconnected": [], "stats": {"device": "cpu"}}`

// served is a client of a server that answers by a function, and a graph of two nodes.
func served(t *testing.T, answer http.HandlerFunc, options ...ClientOption) (*Client, *Graph) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client, err := NewClient(server.URL, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	graph := NewGraph()
	graph.Square(graph.Parameter("w")).Named("loss")
	return client, graph
}

func answer(response http.ResponseWriter, request *http.Request, status int, body string) {
	_, _ = io.Copy(io.Discard, request.Body)
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(status)
	_, _ = io.WriteString(response, body)
}

func three(graph *Graph) Feeds {
	w, _ := graph.Find("w")
	return Feeds{w: Scalar(3.0)}
}

// still is a clock that stands, and waits that end at once.
func still() Surroundings {
	return Surroundings{Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
}

func TestResultsAreLookedUp(t *testing.T) {
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		answer(response, request, 200, square)
	})
	found, err := client.Gradients(context.Background(), graph, three(graph))
	if err != nil {
		t.Fatal(err)
	}
	w, _ := graph.Find("w")
	byNode, _ := found.Gradients.Of(w)
	byName, _ := found.Gradients.Named("w")
	value, err := found.Value()
	if byNode == nil || byNode != byName || byNode != found.Gradients.At(0) || found.Gradients.Len() != 1 || err != nil {
		t.Errorf("%v, %v, %v", byNode, byName, err)
	}
	if item, err := Item[float64](value); item != 9 || err != nil {
		t.Errorf("%v, %v", item, err)
	}
	for _, none := range []*Node{NewGraph().Input("w"), nil} {
		if _, err := found.Gradients.Of(none); !isInput(err) {
			t.Errorf("%v", err)
		}
	}
	w.Named("")
	if _, err := found.Gradients.Named(""); !isInput(err) {
		t.Errorf("%v", err)
	}
	if found.Stats()["device"] != "cpu" {
		t.Errorf("%v", found.Stats())
	}
}

func TestCancelledBeforeItBegins(t *testing.T) {
	client, graph := served(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client.Gradients(ctx, graph, three(graph)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestCancelledWithinAnAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	requests := 0
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		requests++
		response.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(response, `{"values"`)
		_ = http.NewResponseController(response).Flush()
		cancel()
		<-request.Context().Done()
	})
	if _, err := client.Gradients(ctx, graph, three(graph)); !errors.Is(err, context.Canceled) || is[*DeadlineError](err) {
		t.Errorf("%v", err)
	}
	client.Close()
	if requests != 1 {
		t.Errorf("asked %d times", requests)
	}
}

func TestCancelledWithinAWait(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Retry-After", "3600")
		answer(response, request, 503, "")
		cancel()
	}, WithTimeout(0))
	if _, err := client.Gradients(ctx, graph, three(graph)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTheDeadlineOfTheContextCountsWhereItIsFirst(t *testing.T) {
	var query string
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		query = request.URL.Query().Get("timeout_ms")
		answer(response, request, 200, square)
	}, WithTimeout(time.Hour))
	for limit, most := range map[time.Duration]time.Duration{2 * time.Hour: time.Hour, 30 * time.Minute: 30 * time.Minute} {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		if _, err := client.Gradients(ctx, graph, three(graph)); err != nil {
			t.Error(err)
		}
		cancel()
		left, err := time.ParseDuration(query + "ms")
		if err != nil || left > most || left < most/2 {
			t.Errorf("%v are left of %v, %v", left, most, err)
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := client.Gradients(ctx, graph, three(graph)); !is[*DeadlineError](err) {
		t.Errorf("%v", err)
	}
}

// An answer that comes byte by byte for ever is over at the deadline.
func TestAnAnswerThatNeverEnds(t *testing.T) {
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		for request.Context().Err() == nil {
			_, _ = io.WriteString(response, " ")
			_ = http.NewResponseController(response).Flush()
		}
	}, WithRetries(0))
	_, err := client.Gradients(context.Background(), graph, three(graph), GradientsOptions{
		RunOptions: RunOptions{CallOptions: CallOptions{Timeout: 50 * time.Millisecond}},
	})
	if !is[*DeadlineError](err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestAnAnswerThatIsLongerThanMayBeRead(t *testing.T) {
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		for request.Context().Err() == nil {
			_, _ = io.WriteString(response, strings.Repeat(" ", 1<<12))
		}
	}, WithMaxResponseBytes(1<<16), WithTimeout(0))
	_, err := client.Gradients(context.Background(), graph, three(graph))
	if !is[*TooLargeError](err) || !is[*TransportError](err) {
		t.Errorf("%v", err)
	}
}

// With -race, this shows that goroutines may share a client, a graph and a registered one, which is registered once.
func TestGoroutinesShare(t *testing.T) {
	var registrations, calls atomic.Int32
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/v1/graphs" {
			registrations.Add(1)
			answer(response, request, 201, `{"graph_id": "g", "node_count": 2}`)
			return
		}
		if calls.Add(1) == 1 {
			response.Header().Set("Retry-After", "0")
			answer(response, request, 503, "")
			return
		}
		answer(response, request, 200, square)
	}, WithSurroundings(still()))
	registered, err := client.RegisterLater(graph)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			for _, on := range []Computable{graph, registered} {
				if _, err := client.Gradients(context.Background(), on, three(graph)); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	if registrations.Load() != 1 || registered.ID() != "g" || calls.Load() != 33 {
		t.Errorf("registered %d times, called %d times", registrations.Load(), calls.Load())
	}
}

func TestARegisteredGraphIsWhatItWas(t *testing.T) {
	var body map[string]any
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		body = nil
		_ = json.NewDecoder(request.Body).Decode(&body)
		if request.URL.Path == "/v1/graphs" {
			answer(response, request, 201, `{"graph_id": "g/h", "node_count": 2, "graph": {"nodes": []}}`)
			return
		}
		if request.URL.EscapedPath() != "/v1/graphs/g%2Fh/gradients" {
			t.Error(request.URL.EscapedPath())
		}
		answer(response, request, 200, square)
	})
	registered, err := client.Register(context.Background(), graph, RegisterOptions{Description: "a square"})
	if err != nil || body["description"] != "a square" || string(registered.Fields()["node_count"]) != "2" {
		t.Fatalf("%v, %v", body, err)
	}
	loss, _ := graph.Find("loss")
	graph.Tanh(loss)
	if _, err := client.Gradients(context.Background(), registered, three(graph)); err != nil || body["graph"] != nil {
		t.Errorf("%v, %v", body, err)
	}
}

// The cotangent is that of the last node, of a registered graph the one that was the last.
func TestACotangentBesideTheRequestIsNamedByItsNode(t *testing.T) {
	var tensors map[string]*Tensor
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		tensors, _, _ = DecodeSafetensors(body)
		answer(response, request, 200, `{"graph_id": "g", `+square[1:])
	})
	registered, err := client.RegisterLater(graph)
	if err != nil {
		t.Fatal(err)
	}
	loss, _ := graph.Find("loss")
	graph.Tanh(loss)
	for name, on := range map[string]Computable{"cotangents.1": registered, "cotangents.2": graph} {
		options := GradientsOptions{Cotangent: Scalar(1.0)}
		options.Form = Safetensors
		if _, err := client.Gradients(context.Background(), on, three(graph), options); err != nil || tensors[name] == nil {
			t.Errorf("%v, %v", tensors, err)
		}
	}
}

func TestGraphsThatAreThereAreFoundAndForgotten(t *testing.T) {
	client, _ := served(t, func(response http.ResponseWriter, request *http.Request) {
		switch request.Method + " " + request.URL.Path {
		case "GET /v1/graphs/g":
			answer(response, request, 200, `{"graph_id": "g", "node_count": 1, "graph": {"nodes": [{"op": "input", "name": "x"}]}}`)
		case "POST /v1/graphs/g/forward":
			answer(response, request, 200, `{"values": [{"node": 0, "tensor": {"dtype": "bool", "shape": [0]}}]}`)
		default:
			answer(response, request, 200, `{"graph_id": "g", "node_count": 1, "description": "d"}`)
		}
	})
	ctx := context.Background()
	registered, err := client.Registered(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registered.Graph().Find("x"); err != nil || registered.ID() != "g" {
		t.Errorf("%v", err)
	}
	if found, err := client.Forward(ctx, registered, nil); err != nil || found.Values.Len() != 1 {
		t.Errorf("%v", err)
	}
	if gone, err := client.Unregister(ctx, "g"); err != nil || *gone != (GraphSummary{"g", "d", 1}) {
		t.Errorf("%v, %v", gone, err)
	}
	if _, err := client.Unregister(ctx, ""); !isInput(err) {
		t.Errorf("%v", err)
	}
}

func TestListingsAskForNoMoreThanIsLookedAt(t *testing.T) {
	pages := 0
	client, _ := served(t, func(response http.ResponseWriter, request *http.Request) {
		pages++
		name := fmt.Sprintf("t%d", pages)
		answer(response, request, 200, `{"tensors": [{"tensor_id": "`+name+`", "etag": "e"}], "next": "`+name+`"}`)
	})
	for resident, err := range client.Tensors(context.Background()) {
		if err != nil || resident.Name == "t2" {
			break
		}
	}
	if pages != 2 {
		t.Errorf("%d pages were asked for", pages)
	}
}

func TestAListingThatBreaksOffEndsWithTheError(t *testing.T) {
	client, _ := served(t, func(response http.ResponseWriter, request *http.Request) { answer(response, request, 500, "") })
	count := 0
	for graph, err := range client.Graphs(context.Background()) {
		count++
		if graph != nil || !is[*ServerError](err) {
			t.Errorf("%v, %v", graph, err)
		}
	}
	if count != 1 {
		t.Errorf("%d entries", count)
	}
}

func TestATensorThatDidNotChangeIsNotSent(t *testing.T) {
	client, _ := served(t, func(response http.ResponseWriter, request *http.Request) {
		if request.Header.Get("If-None-Match") == `"1"` {
			response.WriteHeader(http.StatusNotModified)
			return
		}
		answer(response, request, 200, `{"tensor_id": "w", "etag": "1", "tensor": {"dtype": "int8", "shape": [], "data": [3]}}`)
	})
	found, err := client.Get(context.Background(), "w")
	if err != nil || found.ETag != "1" || found.DType != Int8 {
		t.Fatalf("%v, %v", found, err)
	}
	if again, err := client.GetIfChanged(context.Background(), found.Resident); again != nil || err != nil {
		t.Errorf("%v, %v", again, err)
	}
	if other, err := client.GetIfChanged(context.Background(), &Resident{Name: "w", ETag: "0"}); other == nil || err != nil {
		t.Errorf("%v, %v", other, err)
	}
	if _, err := client.Get(context.Background(), ""); !isInput(err) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsSaidOfAResidentTensorIsKept(t *testing.T) {
	client, _ := served(t, func(response http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("durable") != "false" {
			t.Error(request.URL)
		}
		answer(response, request, 201, `{"tensor_id": "w", "etag": "1", "dtype": "new", "shape": [], "bytes": 9007199254740993,
			"durable": false, "written_within_ms": 50}`)
	})
	kept, err := client.Put(context.Background(), "w", Scalar(1.0), PutOptions{Durable: Set(false)})
	if err != nil || kept.DType != "new" || *kept.Bytes != 1<<53+1 || *kept.Durable || *kept.WrittenWithinMS != 50 {
		t.Errorf("%v, %v", kept, err)
	}
	if _, err := client.Put(context.Background(), "w", nil); !isInput(err) {
		t.Errorf("%v", err)
	}
}

func TestFeedsThatAreNilAreRefused(t *testing.T) {
	client, graph := served(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	w, _ := graph.Find("w")
	for _, value := range []Value{nil, (*Tensor)(nil), (*Resident)(nil)} {
		if _, err := client.Forward(context.Background(), graph, Feeds{w: value}); !isInput(err) {
			t.Errorf("%v", err)
		}
	}
	if _, err := client.Forward(context.Background(), graph, Feeds{nil: Scalar(1.0)}); !isInput(err) {
		t.Errorf("%v", err)
	}
}

func TestFieldsThatAreNewerTravel(t *testing.T) {
	var body map[string]any
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		_ = json.NewDecoder(request.Body).Decode(&body)
		answer(response, request, 200, square)
	})
	options := ForwardOptions{RunOptions{CallOptions: CallOptions{Form: JSON, Extra: map[string]any{"new": []int{0}}}}}
	if _, err := client.Forward(context.Background(), graph, three(graph), options); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(body["new"]) != "[0]" || body["encoding"] != "json" || body["diagnose"] != nil {
		t.Errorf("%v", body)
	}
}

func TestAPrecisionTravels(t *testing.T) {
	var body map[string]any
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		body = nil
		_ = json.NewDecoder(request.Body).Decode(&body)
		answer(response, request, 200, square)
	})
	for _, precision := range []Precision{
		"", PrecisionFloat32, PrecisionTF32x3, PrecisionTF32, PrecisionBFloat16, "of tomorrow",
	} {
		options := ForwardOptions{RunOptions{CallOptions: CallOptions{Form: JSON}, Precision: precision}}
		if _, err := client.Forward(context.Background(), graph, three(graph), options); err != nil {
			t.Fatal(err)
		}
		if sent, isStated := body["precision"]; isStated != (precision != "") || isStated && sent != string(precision) {
			t.Errorf("%q: %v", precision, body)
		}
	}
}

func TestALayoutTravelsAndAMatrixIsLookedUp(t *testing.T) {
	var body map[string]any
	more := ""
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		body = nil
		_ = json.NewDecoder(request.Body).Decode(&body)
		answer(response, request, 200, `{"values": [], "gradients": [], "hessian": []`+more+`}`)
	})
	w, _ := graph.Find("w")
	loss, _ := graph.Node(1)
	options := HessianOptions{RunOptions: RunOptions{CallOptions: CallOptions{Form: JSON}}, Wrt: []*Node{loss, w}}
	without, err := client.Hessian(context.Background(), graph, three(graph), options)
	if err != nil || without.Matrix != nil || body["layout"] != nil {
		t.Errorf("%v, %v, %v", err, without, body)
	}
	options.Layout = LayoutMatrix
	more = `, "matrix": {"offsets": [{"node": 1, "offset": 0, "size": 1}, {"node": 0, "offset": 1, "size": 2}],
		"tensor": {"dtype": "float64", "shape": [3, 3], "data": [0, 1, 2, 3, 4, 5, 6, 7, 8]}}`
	with, err := client.Hessian(context.Background(), graph, three(graph), options)
	if err != nil || body["layout"] != "matrix" || with.Hessian.Len() != 0 || with.Fields["matrix"] != nil {
		t.Fatalf("%v, %v, %v", err, with, body)
	}
	byNode, err := with.Matrix.Offsets.Of(w)
	byName, _ := with.Matrix.Offsets.Named("w")
	if err != nil || byNode != (NodeOffset{Offset: 1, Size: 2}) || byName != byNode {
		t.Errorf("%v, %v, %v", err, byNode, byName)
	}
	if elements, err := Slice[float64](with.Matrix.Tensor); err != nil || len(elements) != 9 || elements[5] != 5 {
		t.Errorf("%v, %v", err, elements)
	}
}

func TestAMemoryBudgetTravels(t *testing.T) {
	var body string
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		sent, _ := io.ReadAll(request.Body)
		body = string(sent)
		answer(response, request, 200, square)
	})
	ctx, call, budget := context.Background(), CallOptions{Form: JSON}, int64(1)<<40+1
	w, _ := graph.Find("w")
	types := Types{w: {DType: Float64}}
	for name, ask := range map[string]func(int64){
		"forward": func(bytes int64) {
			_, _ = client.Forward(ctx, graph, three(graph), ForwardOptions{RunOptions{CallOptions: call, MemoryBudget: bytes}})
		},
		"check": func(bytes int64) {
			_, _ = client.Check(ctx, graph, three(graph), CheckOptions{CallOptions: call, MemoryBudget: bytes})
		},
		"plan": func(bytes int64) {
			_, _ = client.Plan(ctx, graph, types, PlanOptions{CallOptions: call, MemoryBudget: bytes})
		},
	} {
		if ask(0); !strings.HasPrefix(body, "{") || strings.Contains(body, "memory_budget") {
			t.Errorf("%s without one: %s", name, body)
		}
		if ask(budget); !strings.Contains(body, `"memory_budget":1099511627777`) {
			t.Errorf("%s: %s", name, body)
		}
		body = ""
	}
}

func TestErrorsAreToldApart(t *testing.T) {
	status := 0
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		answer(response, request, status, "")
	}, WithSurroundings(still()))
	for stated, fits := range map[int]func(error) bool{
		400: is[*GraphError], 401: is[*AuthenticationError], 404: is[*NotFoundError], 408: is[*DeadlineError],
		412: is[*ConditionError], 429: is[*RateError], 500: is[*ServerError], 503: is[*OverloadError], 504: is[*DeadlineError],
		507: is[*StoreFullError],
	} {
		status = stated
		_, err := client.Forward(context.Background(), graph, three(graph))
		var refusal *Refusal
		if !fits(err) || !errors.As(err, &refusal) || refusal.Status != stated || is[*TransportError](err) {
			t.Errorf("%d: %v", stated, err)
		}
	}
	status = 304
	if _, err := client.Forward(context.Background(), graph, three(graph)); !is[*MalformedError](err) {
		t.Errorf("%v", err)
	}
}

func TestNodesOfARefusalAreNamed(t *testing.T) {
	client, graph := served(t, func(response http.ResponseWriter, request *http.Request) {
		answer(response, request, 422, `{"code": "shape_mismatch", "detail": "no.", "node": 1}`)
	})
	_, err := client.Forward(context.Background(), graph, three(graph))
	if err == nil || err.Error() != `gradserve: shape_mismatch: no. (that is node 1 (square, "loss"))` {
		t.Errorf("%v", err)
	}
}

func TestKeysAndPasswordsAreInNoError(t *testing.T) {
	t.Setenv("GRADSERVE_API_KEY", "secret of the environment")
	for url, options := range map[string][]ClientOption{
		"http://127.0.0.1:1":                    nil,
		"http://user:secret@127.0.0.1:1\x7f":    {WithAPIKey("k")},
		"ftp://user:secret@127.0.0.1:1":         {WithAPIKey("k")},
		"http://127.0.0.1:1?secret=1":           {WithAPIKey("k")},
		"http://127.0.0.1:1/":                   {WithAPIKey("secret\n")},
		"http://user:secret@127.0.0.1:1/secret": {WithAPIKey("secret")},
	} {
		client, err := NewClient(url, append(options, WithRetries(0))...)
		if err == nil {
			_, err = client.Ops(context.Background())
		}
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}
