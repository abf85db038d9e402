package main

import (
	"encoding/json"
	"errors"

	gs "gradserve.example/gradserve"
)

// returned returns a result by its API names.
func returned(answer any, err error) (members, error) {
	if err != nil {
		return nil, err
	}
	switch a := answer.(type) {
	case *gs.ForwardAnswer:
		return forward(*a), nil
	case *gs.GradientsAnswer:
		return gradients(*a), nil
	case *gs.JVPAnswer:
		made := forward(a.ForwardAnswer)
		made["tangents"] = results(a.Tangents)
		return made, nil
	case *gs.JacobianAnswer:
		made := forward(a.ForwardAnswer)
		made["jacobian"] = blocks(a.Jacobian, "of", "wrt")
		return made, nil
	case *gs.HVPAnswer:
		made := gradients(a.GradientsAnswer)
		made["hvp"] = results(a.HVP)
		return made, nil
	case *gs.HessianAnswer:
		made := gradients(a.GradientsAnswer)
		made["hessian"], made["matrix"] = blocks(a.Hessian, "row", "column"), matrix(a.Matrix)
		return made, nil
	case *gs.CheckAnswer:
		made := raw(a.Fields)
		made["passed"] = a.Passed
		return made, nil
	case *gs.PlanAnswer:
		made := raw(a.Fields)
		made["admitted"] = a.Admitted
		return made, nil
	case *gs.DifferentiateAnswer:
		return differentiated(a)
	}
	return nil, errors.New("unknown answer type")
}

func forward(answer gs.ForwardAnswer) members {
	made := raw(answer.Fields)
	made["values"] = results(answer.Values)
	if answer.Stored.Len() > 0 {
		stored := []members{}
		for node, resident := range answer.Stored.All() {
			entry, _ := handle(resident, nil)
			entry["node"] = node.ID()
			stored = append(stored, entry)
		}
		made["stored"] = stored
	}
	return made
}

func gradients(answer gs.GradientsAnswer) members {
	made := forward(answer.ForwardAnswer)
	made["gradients"], made["disconnected"] = results(answer.Gradients), ids(answer.Disconnected)
	return made
}

func ids(nodes []*gs.Node) []int {
	made := []int{}
	for _, node := range nodes {
		made = append(made, node.ID())
	}
	return made
}

// results looks results up by node, as users do.
func results(all gs.Results[*gs.Tensor]) []members {
	made := []members{}
	for node := range all.All() {
		if tensor, err := all.Of(node); err == nil {
			made = append(made, members{"node": node.ID(), "tensor": bits(tensor)})
		}
	}
	return made
}

func blocks(all gs.Blocks, first, second string) []members {
	made := []members{}
	for pair := range all.All() {
		if tensor, err := all.Of(pair[0], pair[1]); err == nil {
			made = append(made, members{first: pair[0].ID(), second: pair[1].ID(), "tensor": bits(tensor)})
		}
	}
	return made
}

// matrix returns the matrix of a Hessian, or nil if there is none.
func matrix(hessian *gs.HessianMatrix) members {
	if hessian == nil {
		return nil
	}
	offsets := []members{}
	for node := range hessian.Offsets.All() {
		if place, err := hessian.Offsets.Of(node); err == nil {
			offsets = append(offsets, members{"node": node.ID(), "offset": place.Offset, "size": place.Size})
		}
	}
	return members{"offsets": offsets, "tensor": bits(hessian.Tensor)}
}

func differentiated(answer *gs.DifferentiateAnswer) (members, error) {
	made := raw(answer.Fields)
	gradients := []members{}
	for node, gradient := range answer.Gradients.All() {
		gradients = append(gradients, members{"node": node.ID(), "gradient_node": gradient.ID()})
	}
	graph, err := json.Marshal(answer.Graph)
	made["gradients"], made["disconnected"], made["graph"] = gradients, ids(answer.Disconnected), string(graph)
	return made, err
}

// told returns an error in the form of a result.
func told(err error) members {
	made := members{"type": typeOf(err), "message": err.Error()}
	var refusal *gs.Refusal
	if errors.As(err, &refusal) {
		for name, value := range report(refusal) {
			made[name] = value
		}
	}
	return made
}

// is reports whether an error, or one that it wraps, has a type.
func is[T error](err error) bool {
	var found T
	return errors.As(err, &found)
}

// typeOf returns the type of an error: the first that fits.
func typeOf(err error) string {
	switch {
	case is[*gs.InputError](err):
		return "input"
	case is[*gs.TooLargeError](err):
		return "too_large"
	case is[*gs.TransportError](err):
		return "transport"
	case is[*gs.DeadlineError](err):
		return "deadline"
	case is[*gs.AuthenticationError](err):
		return "authentication"
	case is[*gs.RateError](err):
		return "rate"
	case is[*gs.OverloadError](err):
		return "overload"
	case is[*gs.NotFoundError](err):
		return "not_found"
	case is[*gs.ConditionError](err):
		return "condition"
	case is[*gs.StoreFullError](err):
		return "store_full"
	case is[*gs.ServerError](err):
		return "server"
	case is[*gs.GraphError](err):
		return "graph"
	}
	return "unknown"
}

func report(refusal *gs.Refusal) members {
	made := members{"status": refusal.Status}
	for name, text := range map[string]string{
		"code": refusal.Code, "detail": refusal.Detail, "request_id": refusal.RequestID, "expected": refusal.Expected,
		"got": refusal.Got, "pointer": refusal.Pointer,
	} {
		if text != "" {
			made[name] = text
		}
	}
	for name, number := range map[string]*int{
		"node": refusal.Node, "function": refusal.Function, "function_node": refusal.FunctionNode,
		"operand": refusal.Operand,
	} {
		if number != nil {
			made[name] = *number
		}
	}
	errors := []members{}
	for _, each := range refusal.Errors {
		errors = append(errors, report(each))
	}
	if len(errors) > 0 {
		made["errors"] = errors
	}
	if extra, err := json.Marshal(refusal.Extra); err == nil && len(refusal.Extra) > 0 {
		made["extra"] = string(extra)
	}
	return made
}
