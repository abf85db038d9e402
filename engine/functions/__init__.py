"""Functions of the mathematical library, written out in the primitives of the loop language.

    coefficients → float_parts → one family a file → expansions

What may live here: expansions, with the source and the error of each. What may not: functions of whole arrays, which
are the NumPy printer's.

Files:
    arc_tangent          The angle of a point written in IEEE primitives: an arc tangent below tan(π / 8), turned to its
                         octant
    bessel_coefficients  Coefficients of the polynomials that modified Bessel functions are written with, lowest power
                         first
    bessel_functions     Modified Bessel functions of the first kind, in arithmetic and exponentials that every printer
                         has
    circular             sin and cos written in IEEE primitives: x = n π / 2 + r, and polynomials of r² for each
                         quadrant
    coefficients         Coefficients of the polynomials that expansions write, lowest power first, and constants in
                         parts
    complex_functions    Functions of complex numbers, written in the primitives of their real and imaginary parts
    error_functions      erf and erfc written in IEEE primitives: a polynomial near 0, and the exponential of one
                         further out
    expansions           Functions of the mathematical library, written out in primitives that every processor has
    exponentials         exp, expm1 and tanh written in IEEE primitives: x = n ln 2 + r, exp(x) = 2ⁿ exp(r), and exp(r)
                         is a polynomial
    float_parts          Parts of floats, of which expansions are made: the format, its powers of two, and polynomials
    gamma_functions      log Γ(x) and its second derivative for x > 0, written in IEEE primitives, in float32
    logarithms           log, log2 and log1p written in IEEE primitives: x = 2ᵏ (1 + f) with 1 + f from √½ to √2, log(1
                         + f) a polynomial
    normal_functions     The inverse error function, and the logarithm of the normal distribution, in IEEE primitives,
                         in float32
    pairs                A loop over complex numbers written in their parts: what every printer but NumPy's has
    products             Products of a row in any order: where that may be another number than in the order of the row
    remainder            The remainder of a division, written in IEEE primitives: exact, where the quotient has few
                         places
    threefry             Threefry-2x32 written in integers of the loop language, which are as wide as its floats: words
                         of 32 bits in them
"""
