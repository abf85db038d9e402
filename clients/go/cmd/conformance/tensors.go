package main

import (
	"encoding/hex"

	gs "gradserve.example/gradserve"
)

// tensor is a tensor as its bits.
type tensor struct {
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Hex   string `json:"hex"`
}

func (t *tensor) read() (*gs.Tensor, error) {
	raw, err := hex.DecodeString(t.Hex)
	if err != nil {
		return nil, err
	}
	return gs.TensorFromBytes(gs.DType(t.DType), t.Shape, raw)
}

func bits(tensor *gs.Tensor) members {
	return members{"dtype": tensor.DType(), "shape": tensor.Shape(), "hex": hex.EncodeToString(tensor.Bytes())}
}
