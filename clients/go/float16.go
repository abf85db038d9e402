package gradserve

import "math"

// Float16Bits is a number of float16 as its bits (IEEE 754 binary16), since Go has no such type.
type Float16Bits uint16

const (
	float16Fraction = 10
	float16Bias     = 15
	float64Fraction = 52
	float64Bias     = 1023
	float16Infinity = 0x7c00
)

// Float64 is the number, exactly. The payload of a NaN is kept.
func (bits Float16Bits) Float64() float64 {
	sign := uint64(bits>>15) << 63
	exponent := uint64(bits>>float16Fraction) & 0x1f
	fraction := uint64(bits) & (1<<float16Fraction - 1)
	switch exponent {
	case 0:
		small := math.Ldexp(float64(fraction), 1-float16Bias-float16Fraction)
		return math.Float64frombits(math.Float64bits(small) | sign)
	case 0x1f:
		exponent = 0x7ff
	default:
		exponent += float64Bias - float16Bias
	}
	return math.Float64frombits(sign | exponent<<float64Fraction | fraction<<(float64Fraction-float16Fraction))
}

// ToFloat16 rounds to the nearest number of float16, and to the even one of two that are as near. What is beyond its
// range is an infinity.
func ToFloat16(number float64) Float16Bits {
	sign := Float16Bits(0)
	if math.Signbit(number) {
		sign = 1 << 15
	}
	if math.IsNaN(number) {
		payload := Float16Bits(math.Float64bits(number)>>(float64Fraction-float16Fraction)) & (1<<float16Fraction - 1)
		return sign | float16Infinity | payload | 1<<(float16Fraction-1)
	}
	if number == 0 {
		return sign
	}
	if math.IsInf(number, 0) {
		return sign | float16Infinity
	}
	_, exponent := math.Frexp(number)
	// The distance between neighbours at this size; numbers below the smallest normal one have all the same.
	step := max(exponent-1, 1-float16Bias) - float16Fraction
	steps := math.RoundToEven(math.Ldexp(math.Abs(number), -step))
	if steps >= 1<<(float16Fraction+1) && step >= float16Bias-float16Fraction || step > float16Bias-float16Fraction {
		return sign | float16Infinity
	}
	// Neighbours have bits that are one apart, over all exponents.
	return sign | Float16Bits(uint64(step+float16Bias+float16Fraction-1)<<float16Fraction+uint64(steps))
}
