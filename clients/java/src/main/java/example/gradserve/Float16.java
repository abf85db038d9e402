package example.gradserve;

/** float16 numbers (IEEE 754 binary16), which Java code holds as bits. */
public final class Float16 {
    private static final int FRACTION = 10;
    private static final int BIAS = 15;
    private static final int DOUBLE_FRACTION = 52;
    private static final int INFINITY = 0x7c00;
    private static final int QUIET = 0x200;

    private Float16() {}

    /**
     * Converts bits to a number, exactly. Preserves the payload of a NaN.
     *
     * @param bits the bits of a float16 number
     * @return its value
     */
    public static double toDouble(short bits) {
        long sign = (long) (bits & 0x8000) << 48;
        int exponent = bits >> FRACTION & 0x1f;
        long fraction = bits & (1 << FRACTION) - 1;
        if (exponent == 0) {
            double small = Math.scalb((double) fraction, 1 - BIAS - FRACTION);
            return Double.longBitsToDouble(Double.doubleToRawLongBits(small) | sign);
        }
        long wide = exponent == 0x1f ? 0x7ff : exponent + Double.MAX_EXPONENT - BIAS;
        return Double.longBitsToDouble(sign | wide << DOUBLE_FRACTION | fraction << DOUBLE_FRACTION - FRACTION);
    }

    /**
     * Rounds to the nearest float16, with ties to even. Numbers beyond its range become infinities.
     *
     * @param number any number
     * @return the bits of its float16
     */
    public static short fromDouble(double number) {
        long wide = Double.doubleToRawLongBits(number);
        int sign = (int) (wide >>> 48) & 0x8000;
        if (Double.isNaN(number)) {
            return (short) (sign | INFINITY | QUIET | wide >> DOUBLE_FRACTION - FRACTION & (1 << FRACTION) - 1);
        }
        if (Double.isInfinite(number)) {
            return (short) (sign | INFINITY);
        }
        // The spacing of float16 numbers at this magnitude; all subnormal numbers have the same spacing.
        int step = Math.max(Math.getExponent(number), 1 - BIAS) - FRACTION;
        if (step > BIAS - FRACTION) {
            return (short) (sign | INFINITY);
        }
        int steps = (int) Math.rint(Math.scalb(Math.abs(number), -step));
        // Adjacent numbers have adjacent bits, across exponents too, and infinity follows the largest number.
        return (short) (sign | (step + BIAS + FRACTION - 1 << FRACTION) + steps);
    }
}
