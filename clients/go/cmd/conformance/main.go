// The program that runs conformance cases with this client. It reads one case per line and writes one result per line,
// as described in clients/conformance/README.md.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	gs "gradserve.example/gradserve"
)

type members = map[string]any

type request struct {
	ID     string  `json:"id"`
	Kind   string  `json:"kind"`
	Form   string  `json:"form"`
	Tensor *tensor `json:"tensor"`
	Wire   *string `json:"wire"`
	File   string  `json:"file"`
	built
	URL    string     `json:"url"`
	Client clientCase `json:"client"`
	Calls  []call     `json:"calls"`
}

func main() {
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var stated request
		if err := json.Unmarshal(line, &stated); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		result := answered(stated)
		result["id"] = stated.ID
		if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func answered(stated request) members {
	var result members
	var err error
	switch stated.Kind {
	case "encode":
		result, err = encoded(stated)
	case "decode":
		result, err = decoded(stated)
	case "build":
		result, err = nodesOfGraph(stated)
	default:
		return exchanged(stated)
	}
	if err != nil {
		return members{"error": told(err)}
	}
	return result
}

// encoded returns a tensor as the client encodes it.
func encoded(stated request) (members, error) {
	tensor, err := stated.Tensor.read()
	if err != nil {
		return nil, err
	}
	form := gs.Form(stated.Form)
	if form == "default" {
		form = gs.DefaultForm(tensor)
	}
	if form == gs.Safetensors {
		pieces, err := gs.EncodeSafetensors(map[string]*gs.Tensor{"t": tensor}, nil)
		return members{"file": hex.EncodeToString(bytes.Join(pieces, nil))}, err
	}
	text, err := tensor.EncodeJSON(form)
	return members{"wire": string(text)}, err
}

// decoded returns a tensor as the client decodes it.
func decoded(stated request) (members, error) {
	if stated.Wire != nil {
		var tensor gs.Tensor
		err := tensor.UnmarshalJSON([]byte(*stated.Wire))
		if err != nil {
			return nil, err
		}
		return members{"tensor": bits(&tensor)}, nil
	}
	file, err := hex.DecodeString(stated.File)
	if err != nil {
		return nil, err
	}
	tensor, err := gs.DecodeSafetensor(file, "t")
	if err != nil {
		return nil, err
	}
	return members{"tensor": bits(tensor)}, nil
}

// nodesOfGraph returns the nodes of a graph, and its functions.
func nodesOfGraph(stated request) (members, error) {
	graph, err := graphOf(stated.built)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(graph)
	if err != nil {
		return nil, err
	}
	var made struct {
		Nodes     json.RawMessage `json:"nodes"`
		Functions json.RawMessage `json:"functions"`
	}
	err = json.Unmarshal(text, &made)
	result := members{"nodes": string(made.Nodes)}
	if made.Functions != nil {
		result["functions"] = string(made.Functions)
	}
	return result, err
}

// exchanged returns the results of calls.
func exchanged(stated request) members {
	conversation := begin(stated.URL, stated.Client, stated.Kind == "exchange")
	results := make([]members, len(stated.Calls))
	for i, call := range stated.Calls {
		returned, err := conversation.do(call)
		if err != nil {
			results[i] = members{"raised": told(err)}
		} else {
			results[i] = members{"returned": returned}
		}
	}
	return members{"results": results, "waits": conversation.waits}
}
