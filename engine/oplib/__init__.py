"""Parts that definitions of ops share: bases of families, batching, windows, kernels that NumPy does not have, errors.

What may live here: what several definitions use, and kernels that are more than a method of an op. What may not: an op
with a name, or an import from `engine.ops`.

Files:
    accumulate           Adding up: in which dtype, how many elements, and the quotient that makes a mean of a sum
    adding_at            Adding at indices, where repeated ones accumulate: whole rows, or single elements
    apart                Indices of several examples as those of one that holds them all, one behind the other
    attention_formula    Attention in terms of other ops, with whole matrices of scores: what it means, and the way
                         back, twice over
    attention_gradients  The way back through attention, a tile at a time: scores are computed anew, from the logarithms
                         that were kept
    attention_half       Attention of halves, computed in float32: ops that hand on halves and float32 logarithms, as
                         cards' libraries do
    attention_rows       Attention a block of queries at a time; the way back is in `attention_gradients`
    batching             Alignment for batching rules: mapped operands, which have an extra leading axis, are brought
                         into line
    beta_density         The beta distribution in nodes: its density, and how its distribution function changes with a
                         shape
    bitcast              The same bits as another dtype: what loops read and write, whose operands are floats, and what
                         lies in memory
    cofactors            The derivative of a determinant, singular or not
    col2im               The kernel of transposed convolution, the adjoint of `correlate`: products added where the
                         windows lie
    conjugates           Conjugates, and the real part that is what arrives at a real operand: cotangents of complex
                         numbers
    convolution          Base of convolution and its adjoint, on any number of spatial axes
    convolution_layout   Layout of convolutions: how much of one is laid out at a time, so that it stays in the cache,
                         and in which order
    decomposition        Base of the decompositions, and of what is made by them: one operand, matrices on its last two
                         axes
    dynamic_boxes        Boxes whose starts are computed: where they lie in an array, and the same of many examples,
                         each with its own
    element_formula      Formulas of elementwise ops: what they are made of, and the dtype that their kernels compute in
    elementwise          Base of the elementwise ops: an op states a formula and one partial derivative an operand,
                         nothing else
    exponentials         Exponentials of matrices, and their derivatives along a direction
    extremes             NaN where something is chosen by its size: it wins, as in NumPy, and what was chosen takes the
                         gradient
    factors              Matrices taken apart, some at a time: a batch in chunks, and in it matrices that have no answer
    fill                 Numbers around and everywhere: those that JSON has no word for are stated by one
    flat_places          Places in memory of the elements that an index tensor picks from an array: found a chunk at a
                         time
    formula              Base of the ops of networks that are formulas over floats
    from_end             Indices that may be negative, and then count from the end: made whole before anything is read
                         by them
    gamma_density        The gamma distribution in nodes: its density, and how its distribution function changes with
                         the shape
    im2col               The kernels of convolution: sums of products over sliding windows, as matrix products on
                         columns
    index_notes          Index checks that do not wait: on a device, that an index is outside is noted, and read when
                         the run is over
    indices              Index operands: integers, within the axis, and what they pick
    kernel_gradient      The gradient of a convolution by its kernel, an op of its own: what taps see, times what
                         windows give
    known_numbers        What is known of elements before they are computed with; on a card nothing is, since one would
                         wait to hear it
    laid_products        Products laid where their readers want them: several, with biases or without, as parts of one
                         dense result
    laid_results         Results of an op with their axes in memory in other orders than it has them: as their readers
                         want them
    lapack               LAPACK on one matrix after the other, in doubles, as they lie; for matrices so large that this
                         pays
    lapack_work          What LAPACK works in, by its own word: it is asked where a graph is planned, as it is with a
                         length of −1
    last_writer          Who writes to a place last: the number of the entry, so that the same one stands on every
                         device
    library_function     Base of the functions that are SciPy's and CuPy's on whole arrays
    linear_recurrence    A running sum whose terms are scaled on the way: what the gradients of running products are
                         made of
    matrices             Parts of all factorizations: square operands, linear systems, and a batch in which one matrix
                         has no answer
    operands             Errors that several families raise about the shape of an operand
    pack                 Several values as one node: what a rule gives for an op of several results
    permutation          Axes put in order, and into another shape: nothing is written where nothing changes
    pooling              Parts of all pools: their attributes, the windows they look at, and the way along one axis of
                         these
    power_series         Polynomials in nodes, by Horner's rule
    product              The type of a matrix product, by NumPy's rules, and what BLAS can read
    reduction            Base of the reductions: `axes` and `keepdims`, their shapes, their batching, and g brought back
                         to x's shape
    resampling           Weights by which an axis is brought to another extent: computed like all else, so that a plan
                         holds no tables
    residues             The adjoint of a correlation with a stride, as correlations without one
    rows                 Short rows on the CPU. NumPy starts anew for each row of a reduction, which takes longer than a
                         short row itself
    rowwise              Formulas for a row of elements, over scalars of a loop: fused kernels read them
    running              Running sums. On the CPU, NumPy's wait for each sum before they begin the next
    running_op           Base of the ops that run over an axis: one result for each entry, of all up to it, from either
                         end
    score_op             Base of the ops that compute attention a tile at a time
    score_tiles          Scores of queries and keys, a tile at a time: a tile stays in a core's own cache, and the whole
                         matrix nowhere
    segments             Reductions of rows by segment, by any ufunc that is associative: rows of a segment are brought
                         together first
    several_indices      Several index tensors as one: places on the axes that they are of, counted as one axis
    slices               Parts of a tensor along one axis, and a tensor with zeros between its parts
    source               Base of the ops without operands, and which numbers an attribute of theirs may be
    spatial              Checks of the operands and attributes of convolutions and pools, and what they say where these
                         do not hold
    spectrum             What gradients of eigenvectors and singular vectors are written with: adjoints, and gaps that
                         may be 0
    squares              Sums of squares on the CPU, in one pass over memory
    symmetric_slope      The derivative of a function of a symmetric matrix along a direction, exact at equal
                         eigenvalues
    threefry             What is drawn from a key: an element for each counter, made of the two words that Threefry
                         makes of it
    threefry_elements    Random numbers an element at a time, so that loops have them: words and counters carried by
                         floats, as bits
    units                Directions of complex numbers: x / |x|, and what is done at 0, where there is none
    widening             float16 in the course of a computation: in float32, and rounded once at its end
    window_axes          Windows along one axis as an axis of their own: what pools of any number of axes take one after
                         the other
    windows              Sliding windows over the trailing axes of a tensor: how many there are, and which elements each
                         of them sees
"""
