package gradserve

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// object is a JSON object whose members are read when they are needed.
type object map[string]json.RawMessage

// objectOf returns an error if the text is not a JSON object in UTF-8.
func objectOf(text json.RawMessage) (object, error) {
	var members object
	if !utf8.Valid(text) || json.Unmarshal(text, &members) != nil || members == nil {
		return nil, inputErrorf("expected a JSON object")
	}
	return members, nil
}

func objectsOf(text json.RawMessage) ([]object, error) {
	var texts []json.RawMessage
	if json.Unmarshal(text, &texts) != nil || texts == nil {
		return nil, inputErrorf("expected a list of JSON objects")
	}
	objects := make([]object, len(texts))
	for i, each := range texts {
		members, err := objectOf(each)
		if err != nil {
			return nil, err
		}
		objects[i] = members
	}
	return objects, nil
}

// objectOfDistinct also returns an error if the object repeats a name.
func objectOfDistinct(text []byte) (object, error) {
	members, err := objectOf(text)
	if err != nil {
		return nil, err
	}
	decoder, names := json.NewDecoder(bytes.NewReader(text)), 0
	_, _ = decoder.Token() // the brace; the text is known to be JSON
	for ; decoder.More(); names++ {
		var skipped json.RawMessage
		_, _ = decoder.Token()
		_ = decoder.Decode(&skipped)
	}
	if names != len(members) {
		return nil, inputErrorf("the JSON object has a duplicate name")
	}
	return members, nil
}

func textOf(value json.RawMessage) (string, error) {
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		return "", inputErrorf("expected a string")
	}
	return *text, nil
}

func wholeOf(value json.RawMessage) (int, error) {
	var whole *int
	if json.Unmarshal(value, &whole) != nil || whole == nil {
		return 0, inputErrorf("expected an integer")
	}
	return *whole, nil
}

// numbersIn returns the texts of a list's entries. It returns an error if the value is not a list of numbers.
func numbersIn(value json.RawMessage) ([][]byte, error) {
	list := bytes.TrimSpace(value)
	if len(list) < 2 || list[0] != '[' {
		return nil, inputErrorf("expected a list of numbers")
	}
	inside := bytes.TrimSpace(list[1 : len(list)-1])
	if len(inside) == 0 {
		return nil, nil
	}
	numbers := bytes.Split(inside, []byte(","))
	for i, number := range numbers {
		numbers[i] = bytes.TrimSpace(number)
		if first := numbers[i][0]; first != '-' && (first < '0' || first > '9') {
			return nil, inputErrorf("expected a list of numbers, but element %d is not a number", i)
		}
	}
	return numbers, nil
}

// exactFloat is a float that JSON preserves: −0 gets a decimal point, because -0 is an integer.
type exactFloat float64

// MarshalJSON returns the shortest text that parses to this number.
func (number exactFloat) MarshalJSON() ([]byte, error) { return appendFloat(nil, float64(number)), nil }

func appendFloat(text []byte, number float64) []byte {
	if number == 0 && math.Signbit(number) {
		return append(text, "-0.0"...)
	}
	return strconv.AppendFloat(text, number, 'g', -1, 64)
}

// number returns a number unchanged, or the error of plain.
func number(value Number) any {
	if kind := reflect.ValueOf(value).Kind(); value == nil || reflect.Int <= kind && kind <= reflect.Float64 {
		return value
	}
	return inputErrorf("expected a number, got %T", value)
}

// plain converts a value to JSON values; nil if it is absent. Tensors stay tensors.
func plain(value any) (any, error) {
	switch known := value.(type) {
	case json.RawMessage:
		return known, nil
	case *InputError:
		return nil, known
	case *Tensor:
		if known != nil {
			return known, nil
		}
	}
	of := reflect.ValueOf(value)
	switch of.Kind() {
	case reflect.Invalid:
		return nil, nil
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return value, nil
	case reflect.Float32, reflect.Float64:
		if number := of.Float(); !math.IsNaN(number) && !math.IsInf(number, 0) {
			return exactFloat(number), nil
		}
		return nil, inputErrorf("JSON cannot represent %v", value)
	case reflect.String:
		if utf8.ValidString(of.String()) {
			return of.String(), nil
		}
		return nil, inputErrorf("the string is not valid UTF-8")
	case reflect.Pointer:
		if of.IsNil() {
			return nil, nil
		}
		return plain(of.Elem().Interface())
	case reflect.Slice, reflect.Array:
		return plainList(of)
	case reflect.Map:
		return plainMap(of)
	}
	return nil, inputErrorf("JSON cannot represent a value of type %T", value)
}

func plainList(list reflect.Value) (any, error) {
	if list.Kind() == reflect.Slice && list.IsNil() {
		return nil, nil
	}
	entries := make([]any, list.Len())
	for i := range entries {
		entry, err := plain(list.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		entries[i] = entry
	}
	return entries, nil
}

func plainMap(members reflect.Value) (any, error) {
	if members.Type().Key().Kind() != reflect.String {
		return nil, inputErrorf("map keys must be strings, not %v", members.Type().Key())
	}
	made := make(map[string]any, members.Len())
	for _, name := range members.MapKeys() {
		member, err := plain(members.MapIndex(name).Interface())
		if err != nil {
			return nil, err
		}
		made[name.String()] = member
	}
	return made, nil
}

// written returns a value as JSON. Its parts are results of plain.
func written(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, inputErrorf("cannot write the request as JSON: %v", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
