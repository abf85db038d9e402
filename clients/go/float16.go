package gradserve

import "math"

// Float16Bits is a float16 number as its bits (IEEE 754 binary16), because Go has no such type.
type Float16Bits uint16

const (
	float16Fraction = 10
	float16Bias     = 15
	float64Fraction = 52
	float64Bias     = 1023
	float16Infinity = 0x7c00
)

// Float64 returns the number exactly. It preserves the payload of a NaN.
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

// ToFloat16 rounds to the nearest float16, with ties to even. Numbers beyond its range become infinities.
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
	// The spacing of float16 numbers at this magnitude; all subnormal numbers have the same spacing.
	step := max(exponent-1, 1-float16Bias) - float16Fraction
	steps := math.RoundToEven(math.Ldexp(math.Abs(number), -step))
	if steps >= 1<<(float16Fraction+1) && step >= float16Bias-float16Fraction || step > float16Bias-float16Fraction {
		return sign | float16Infinity
	}
	// Adjacent numbers have adjacent bits, across exponents too.
	return sign | Float16Bits(uint64(step+float16Bias+float16Fraction-1)<<float16Fraction+uint64(steps))
}
