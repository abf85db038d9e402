package example.gradserve.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import example.gradserve.Float16;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class Float16Test {
    @Test
    void everyNumberIsReadAndWritten() {
        for (int bits = 0; bits < 1 << 16; bits++) {
            double number = Float16.toDouble((short) bits);
            if (Double.isNaN(number)) {
                assertTrue(Double.isNaN(Float16.toDouble(Float16.fromDouble(number))));
            } else {
                assertEquals((short) bits, Float16.fromDouble(number), () -> "of " + number);
            }
        }
    }

    @Test
    void thePayloadOfANanIsKept() {
        assertEquals((short) 0xfe01, Float16.fromDouble(Float16.toDouble((short) 0xfe01)));
    }

    @ParameterizedTest
    @CsvSource({
        "1.00048828125, 15360", "1.00146484375, 15362", "1.0004883, 15361", "65519.99, 31743", "65520, 31744", "1e300, 31744",
        "2.98023223876953125e-8, 0", "2.9802322387695316e-8, 1", "6.1e-5, 1023"})
    void theNearestIsTakenAndTheEvenOneOfTwo(double number, short bits) {
        assertEquals(bits, Float16.fromDouble(number));
        assertEquals((short) (bits | 0x8000), Float16.fromDouble(-number));
    }
}
