// Written by `python -m clients.ops` from the op registry: do not edit.
package example.gradserve;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** The ops without operands, and with a list of operands, as methods of a graph. */
public abstract sealed class GraphOps permits Graph {
    GraphOps() {}

    /** Appends a node. Null attributes, and null operands at the end, are absent. */
    abstract Node append(String op, Attrs attrs, List<Node> operands);

    private static <T> T given(T options, Consumer<? super T> stating) {
        stating.accept(options);
        return options;
    }

    /** Returns the first opset with an op, or with an attribute as op.attribute. */
    static int since(String name) {
        return switch (name) {
            case "adaptive_avg_pool" -> 2;
            case "adaptive_max_pool" -> 2;
            case "angle" -> 2;
            case "attention.grouped" -> 2;
            case "avg_pool1d" -> 2;
            case "avg_pool3d" -> 2;
            case "batch_norm_given" -> 2;
            case "batch_norm_running" -> 2;
            case "betainc" -> 2;
            case "call" -> 2;
            case "cdist" -> 2;
            case "compress" -> 2;
            case "cond" -> 2;
            case "cond_number" -> 2;
            case "conj" -> 2;
            case "conv_transpose1d" -> 2;
            case "cumlogsumexp" -> 2;
            case "cummax" -> 2;
            case "cummin" -> 2;
            case "cumprod" -> 2;
            case "cumsum.reverse" -> 2;
            case "det" -> 2;
            case "eigh" -> 2;
            case "embedding.from_end" -> 2;
            case "embedding.padding_idx" -> 2;
            case "fft" -> 2;
            case "fixed_point" -> 2;
            case "floor_div" -> 2;
            case "full.fill_as" -> 2;
            case "gather.from_end" -> 2;
            case "group_norm" -> 2;
            case "i0" -> 2;
            case "i0e" -> 2;
            case "i1" -> 2;
            case "i1e" -> 2;
            case "ifft" -> 2;
            case "igamma" -> 2;
            case "igammac" -> 2;
            case "imag" -> 2;
            case "index" -> 2;
            case "index_add" -> 2;
            case "index_set" -> 2;
            case "irfft" -> 2;
            case "lstsq" -> 2;
            case "lu" -> 2;
            case "make_complex" -> 2;
            case "map" -> 2;
            case "matrix_exp" -> 2;
            case "matrix_power" -> 2;
            case "matrix_rank" -> 2;
            case "max_pool1d" -> 2;
            case "max_pool3d" -> 2;
            case "nonzero" -> 2;
            case "pad.fill_as" -> 2;
            case "pinv" -> 2;
            case "qr" -> 2;
            case "random_bernoulli" -> 2;
            case "random_bits" -> 2;
            case "random_categorical" -> 2;
            case "random_exponential" -> 2;
            case "random_fold_in" -> 2;
            case "random_gumbel" -> 2;
            case "random_key" -> 2;
            case "random_normal" -> 2;
            case "random_permutation" -> 2;
            case "random_split" -> 2;
            case "random_uniform" -> 2;
            case "real" -> 2;
            case "rem" -> 2;
            case "resize" -> 2;
            case "rfft" -> 2;
            case "scan" -> 2;
            case "scatter_add.from_end" -> 2;
            case "segment_max" -> 2;
            case "segment_mean" -> 2;
            case "segment_min" -> 2;
            case "segment_prod" -> 2;
            case "sinc" -> 2;
            case "slice_at" -> 2;
            case "stft" -> 2;
            case "svd" -> 2;
            case "symmetric_function" -> 2;
            case "take_along.from_end" -> 2;
            case "trunc_div" -> 2;
            case "update_slice_at" -> 2;
            case "while" -> 2;
            case "xlog1py" -> 2;
            case "xlogy" -> 2;
            case "zeta" -> 2;
            default -> 1;
        };
    }

    private static List<Node> operands(List<Node> others, Node... first) {
        List<Node> operands = new ArrayList<>(Arrays.asList(first));
        operands.addAll(others);
        return operands;
    }

    /** Options of arange. */
    public static final class ArangeOptions {
        private final Attrs attrs = new Attrs();

        private ArangeOptions() {}

        /**
         * First number; default 0.0.
         *
         * @param start the value
         * @return these options
         */
        public ArangeOptions start(Number start) {
            attrs.with("start", start);
            return this;
        }

        /**
         * Distance between numbers; negative to count down, not 0; default 1.0.
         *
         * @param step the value
         * @return these options
         */
        public ArangeOptions step(Number step) {
            attrs.with("step", step);
            return this;
        }

        /**
         * Dtype of the result; default int64.
         *
         * @param dtype the value
         * @return these options
         */
        public ArangeOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }
    }

    /**
     * The op arange: Evenly spaced numbers: y[i] = start + i · step, up to but not including stop.
     *
     * <p>The result has ⌈(stop − start) / step⌉ elements, at least 0. Same as NumPy's arange, but exact: for an integer
     * dtype, start and step must be whole numbers, and all numbers must be in its range.
     *
     * @param stop end of the range, not included
     * @return the node
     */
    public Node arange(Number stop) {
        return append("arange", new Attrs().with("stop", stop), List.of());
    }

    /**
     * The op arange: Evenly spaced numbers: y[i] = start + i · step, up to but not including stop.
     *
     * <p>The result has ⌈(stop − start) / step⌉ elements, at least 0. Same as NumPy's arange, but exact: for an integer
     * dtype, start and step must be whole numbers, and all numbers must be in its range.
     *
     * @param stop end of the range, not included
     * @param options sets options
     * @return the node
     */
    public Node arange(Number stop, Consumer<ArangeOptions> options) {
        ArangeOptions given = given(new ArangeOptions(), options);
        return append("arange", given.attrs.with("stop", stop), List.of());
    }

    /** Options of call. */
    public static final class CallOpOptions {
        private final Attrs attrs = new Attrs();

        private CallOpOptions() {}

        /**
         * Function of operands, results and cotangents; returns a cotangent for each float operand; default: the body's
         * derivative.
         *
         * @param derivative the value
         * @return these options
         */
        public CallOpOptions derivative(GraphFunction derivative) {
            attrs.with("derivative", derivative);
            return this;
        }

        /**
         * Whether the backward pass recomputes the body instead of storing its values; default false.
         *
         * @param recompute the value
         * @return these options
         */
        public CallOpOptions recompute(boolean recompute) {
            attrs.with("recompute", recompute);
            return this;
        }
    }

    /**
     * The op call: The results of body(operands).
     *
     * <p><code>derivative</code> defines a custom gradient: a function of the operands, the results and the cotangents
     * of the results that returns one cotangent for each float operand. It replaces the derivative of the body. With
     * <code>recompute</code>, no values inside the body are stored for the backward pass, which runs the body again.
     *
     * <p>For <code>derivative</code>, JAX has <code>custom_vjp</code> and PyTorch has <code>autograd.Function</code>;
     * their rules receive the values that the forward pass saved. For <code>recompute</code>, both have
     * <code>checkpoint</code>.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: that of the body, or <code>derivative</code>.
     *
     * @param body function of the operands
     * @param operands operands in order
     * @return the node
     */
    public Node call(GraphFunction body, List<Node> operands) {
        return append("call", new Attrs().with("body", body), operands(operands));
    }

    /**
     * The op call: The results of body(operands).
     *
     * <p><code>derivative</code> defines a custom gradient: a function of the operands, the results and the cotangents
     * of the results that returns one cotangent for each float operand. It replaces the derivative of the body. With
     * <code>recompute</code>, no values inside the body are stored for the backward pass, which runs the body again.
     *
     * <p>For <code>derivative</code>, JAX has <code>custom_vjp</code> and PyTorch has <code>autograd.Function</code>;
     * their rules receive the values that the forward pass saved. For <code>recompute</code>, both have
     * <code>checkpoint</code>.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: that of the body, or <code>derivative</code>.
     *
     * @param body function of the operands
     * @param operands operands in order
     * @param options sets options
     * @return the node
     */
    public Node call(GraphFunction body, List<Node> operands, Consumer<CallOpOptions> options) {
        CallOpOptions given = given(new CallOpOptions(), options);
        return append("call", given.attrs.with("body", body), operands(operands));
    }

    /** Options of cat. */
    public static final class CatOptions {
        private final Attrs attrs = new Attrs();

        private CatOptions() {}

        /**
         * Axis to join along; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public CatOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * The operands' extents on the axis, checked if given.
         *
         * @param sizes the value
         * @return these options
         */
        public CatOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }
    }

    /**
     * The op cat: y = the operands, joined along <code>axis</code>; their other extents must be equal.
     *
     * <p>The result has their common dtype. <code>sizes</code>, if given, must be their extents on the axis.
     *
     * <p>Gradient: g, split into the operands' parts.
     *
     * @param x operands in order
     * @return the node
     */
    public Node cat(List<Node> x) {
        return append("cat", new Attrs(), operands(x));
    }

    /**
     * The op cat: y = the operands, joined along <code>axis</code>; their other extents must be equal.
     *
     * <p>The result has their common dtype. <code>sizes</code>, if given, must be their extents on the axis.
     *
     * <p>Gradient: g, split into the operands' parts.
     *
     * @param x operands in order
     * @param options sets options
     * @return the node
     */
    public Node cat(List<Node> x, Consumer<CatOptions> options) {
        CatOptions given = given(new CatOptions(), options);
        return append("cat", given.attrs, operands(x));
    }

    /**
     * The op cond: then(operands) if the predicate, a bool [], is true, else otherwise(operands). Only one of them
     * runs.
     *
     * <p>Both functions must return results of the same types. JAX: <code>lax.cond</code>. PyTorch: <code>cond</code>.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: that of the function that ran; the other one contributes exact zeros.
     *
     * @param then function of the operands after the predicate; runs if the predicate is true
     * @param otherwise function of the same operands; runs if the predicate is false
     * @param predicate an operand
     * @param operands operands in order
     * @return the node
     */
    public Node cond(GraphFunction then, GraphFunction otherwise, Node predicate, Node... operands) {
        return append("cond", new Attrs().with("then", then).with("otherwise", otherwise), operands(List.of(operands), predicate));
    }

    /**
     * The op constant: A tensor that is part of the graph: y = value.
     *
     * @param value value of the tensor
     * @return the node
     */
    public Node constant(Tensor value) {
        return append("constant", new Attrs().with("value", value), List.of());
    }

    /**
     * The op einsum: y[output letters] = Σ a[letters] · b[letters] · … over all letters that are not in the output.
     *
     * <p>For two operands, <code>equation</code> looks like "ab,bc-&gt;ac": a letter (a–z, A–Z) for each axis, a comma
     * between operands, and after the arrow the axes of the result. Each letter has one extent and appears at most once
     * in each operand. An ellipsis or an implicit output is not allowed; spaces are ignored. The number of operands is
     * 1 to 32. The result has the common dtype of the operands, as in NumPy.
     *
     * <p>Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs
     * more than the equation evaluated as one loop (greedy order, as in numpy.einsum_path).
     *
     * <p>Gradient: for each operand, the einsum of g with the other operands.
     *
     * @param equation letters of each operand, then -&gt; and the letters of the result
     * @param a an operand
     * @param b operands in order
     * @return the node
     */
    public Node einsum(String equation, Node a, Node... b) {
        return append("einsum", new Attrs().with("equation", equation), operands(List.of(b), a));
    }

    /** Options of fixedPoint. */
    public static final class FixedPointOptions {
        private final Attrs attrs = new Attrs();

        private FixedPointOptions() {}

        /**
         * Number of operands, the last ones, that are the initial x; at least one; default 0.
         *
         * @param carries the value
         * @return these options
         */
        public FixedPointOptions carries(long carries) {
            attrs.with("carries", carries);
            return this;
        }
    }

    /**
     * The op fixed_point: Repeats x = body(consts, x) until max |Δx| ≤ tolerance · (1 + max |x|), at most
     * <code>max_steps</code> times.
     *
     * <p>x stands for the <code>carries</code>, which must be floats; each maximum is over all of them, and max |x| is
     * that of the new x. An infinity or NaN in x ends the iteration, unfinished. Results: x; <code>steps</code>, int64
     * [], the number of steps that ran; <code>finished</code>, bool []. The gradient is implicit, as in JAX's
     * <code>lax.custom_root</code>, which takes a solver. In PyTorch, write a Python loop and a custom rule.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none for the initial
     * x.
     *
     * @param body function of consts and x; returns the next x
     * @param tolerance largest change at which to stop, relative to 1 + max |x|; 0: no change
     * @param maxSteps maximum number of steps
     * @param operands operands in order
     * @return the node
     */
    public Node fixedPoint(GraphFunction body, double tolerance, long maxSteps, List<Node> operands) {
        return append("fixed_point", new Attrs().with("body", body).with("tolerance", tolerance).with("max_steps", maxSteps), operands(operands));
    }

    /**
     * The op fixed_point: Repeats x = body(consts, x) until max |Δx| ≤ tolerance · (1 + max |x|), at most
     * <code>max_steps</code> times.
     *
     * <p>x stands for the <code>carries</code>, which must be floats; each maximum is over all of them, and max |x| is
     * that of the new x. An infinity or NaN in x ends the iteration, unfinished. Results: x; <code>steps</code>, int64
     * [], the number of steps that ran; <code>finished</code>, bool []. The gradient is implicit, as in JAX's
     * <code>lax.custom_root</code>, which takes a solver. In PyTorch, write a Python loop and a custom rule.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none for the initial
     * x.
     *
     * @param body function of consts and x; returns the next x
     * @param tolerance largest change at which to stop, relative to 1 + max |x|; 0: no change
     * @param maxSteps maximum number of steps
     * @param operands operands in order
     * @param options sets options
     * @return the node
     */
    public Node fixedPoint(GraphFunction body, double tolerance, long maxSteps, List<Node> operands, Consumer<FixedPointOptions> options) {
        FixedPointOptions given = given(new FixedPointOptions(), options);
        return append("fixed_point", given.attrs.with("body", body).with("tolerance", tolerance).with("max_steps", maxSteps), operands(operands));
    }

    /** Options of full. */
    public static final class FullOptions {
        private final Attrs attrs = new Attrs();

        private FullOptions() {}

        /**
         * Value of every element; default 0.0.
         *
         * @param fill the value
         * @return these options
         */
        public FullOptions fill(Number fill) {
            attrs.with("fill", fill);
            return this;
        }

        /**
         * Dtype of the result; default float64.
         *
         * @param dtype the value
         * @return these options
         */
        public FullOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }

        /**
         * Infinity or NaN to use instead of <code>fill</code>; float dtypes only; since opset 2; one of inf, -inf, nan.
         *
         * @param fillAs the value
         * @return these options
         */
        public FullOptions fillAs(String fillAs) {
            attrs.with("fill_as", fillAs);
            return this;
        }
    }

    /**
     * The op full: A tensor filled with one number, created on the server: y[…] = fill.
     *
     * <p>An absent or empty <code>shape</code> makes a 0-d tensor. To fill with an infinity or NaN, use
     * <code>fill_as</code>. PyTorch and JAX: <code>full</code>.
     *
     * @param shape shape of the result; default []
     * @return the node
     */
    public Node full(long... shape) {
        return append("full", new Attrs().with("shape", shape), List.of());
    }

    /**
     * The op full: A tensor filled with one number, created on the server: y[…] = fill.
     *
     * <p>An absent or empty <code>shape</code> makes a 0-d tensor. To fill with an infinity or NaN, use
     * <code>fill_as</code>. PyTorch and JAX: <code>full</code>.
     *
     * @param shape shape of the result; default []
     * @param options sets options
     * @return the node
     */
    public Node full(long[] shape, Consumer<FullOptions> options) {
        FullOptions given = given(new FullOptions(), options);
        return append("full", given.attrs.with("shape", shape), List.of());
    }

    /** Options of index. */
    public static final class IndexOptions {
        private final Attrs attrs = new Attrs();

        private IndexOptions() {}

        /**
         * Axis of each index; default: the first axes, in order.
         *
         * @param axes the value
         * @return these options
         */
        public IndexOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether negative indices count from the end; −1 is the last; default false.
         *
         * @param fromEnd the value
         * @return these options
         */
        public IndexOptions fromEnd(boolean fromEnd) {
            attrs.with("from_end", fromEnd);
            return this;
        }
    }

    /**
     * The op index: y = x[i, j, …]: entries or slices of x at index tensors, one for each of <code>axes</code>, which
     * broadcast together.
     *
     * <p>As in NumPy's x[i, j], the axes of the indices replace the indexed axes if these are adjacent, and come first
     * otherwise. Indices lie in [0, extent); with <code>from_end</code>, in [−extent, extent), and negative ones count
     * from the end. PyTorch and JAX: x[i, j], in which negative indices always count from the end. An index out of
     * range is an error here and in PyTorch; JAX moves it into the range.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
     *
     * @param x an operand
     * @param indices operands in order
     * @return the node
     */
    public Node index(Node x, List<Node> indices) {
        return append("index", new Attrs(), operands(indices, x));
    }

    /**
     * The op index: y = x[i, j, …]: entries or slices of x at index tensors, one for each of <code>axes</code>, which
     * broadcast together.
     *
     * <p>As in NumPy's x[i, j], the axes of the indices replace the indexed axes if these are adjacent, and come first
     * otherwise. Indices lie in [0, extent); with <code>from_end</code>, in [−extent, extent), and negative ones count
     * from the end. PyTorch and JAX: x[i, j], in which negative indices always count from the end. An index out of
     * range is an error here and in PyTorch; JAX moves it into the range.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
     *
     * @param x an operand
     * @param indices operands in order
     * @param options sets options
     * @return the node
     */
    public Node index(Node x, List<Node> indices, Consumer<IndexOptions> options) {
        IndexOptions given = given(new IndexOptions(), options);
        return append("index", given.attrs, operands(indices, x));
    }

    /** Options of indexAdd. */
    public static final class IndexAddOptions {
        private final Attrs attrs = new Attrs();

        private IndexAddOptions() {}

        /**
         * Axis of each index; default: the first axes, in order.
         *
         * @param axes the value
         * @return these options
         */
        public IndexAddOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether negative indices count from the end; −1 is the last; default false.
         *
         * @param fromEnd the value
         * @return these options
         */
        public IndexAddOptions fromEnd(boolean fromEnd) {
            attrs.with("from_end", fromEnd);
            return this;
        }
    }

    /**
     * The op index_add: y = x, then y[i, j, …] += updates, entry by entry: repeated indices accumulate.
     *
     * <p>The operands are x, an index for each of <code>axes</code>, and updates, which broadcast to what
     * <code>index</code> reads. Indices are as in <code>index</code>. PyTorch: <code>index_put</code> with accumulate.
     * JAX: x.at[i, j].add, which drops updates that are out of range.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, d updates = index(g, indices); none for indices.
     *
     * @param x an operand
     * @param indicesAndUpdates operands in order
     * @return the node
     */
    public Node indexAdd(Node x, List<Node> indicesAndUpdates) {
        return append("index_add", new Attrs(), operands(indicesAndUpdates, x));
    }

    /**
     * The op index_add: y = x, then y[i, j, …] += updates, entry by entry: repeated indices accumulate.
     *
     * <p>The operands are x, an index for each of <code>axes</code>, and updates, which broadcast to what
     * <code>index</code> reads. Indices are as in <code>index</code>. PyTorch: <code>index_put</code> with accumulate.
     * JAX: x.at[i, j].add, which drops updates that are out of range.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, d updates = index(g, indices); none for indices.
     *
     * @param x an operand
     * @param indicesAndUpdates operands in order
     * @param options sets options
     * @return the node
     */
    public Node indexAdd(Node x, List<Node> indicesAndUpdates, Consumer<IndexAddOptions> options) {
        IndexAddOptions given = given(new IndexAddOptions(), options);
        return append("index_add", given.attrs, operands(indicesAndUpdates, x));
    }

    /** Options of indexSet. */
    public static final class IndexSetOptions {
        private final Attrs attrs = new Attrs();

        private IndexSetOptions() {}

        /**
         * Axis of each index; default: the first axes, in order.
         *
         * @param axes the value
         * @return these options
         */
        public IndexSetOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether negative indices count from the end; −1 is the last; default false.
         *
         * @param fromEnd the value
         * @return these options
         */
        public IndexSetOptions fromEnd(boolean fromEnd) {
            attrs.with("from_end", fromEnd);
            return this;
        }
    }

    /**
     * The op index_set: y = x, then y[i, j, …] = updates. If a position is written twice, the last update in row-major
     * order wins.
     *
     * <p>Only the winning update gets a gradient. The operands are x, an index for each of <code>axes</code>, and
     * updates, which broadcast to what <code>index</code> reads. Indices are as in <code>index</code>. PyTorch:
     * <code>index_put</code>. JAX: x.at[i, j].set. Neither defines which of several updates wins; PyTorch sends the
     * gradient to all of them, and JAX drops updates that are out of range.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, 0 where an update was written; d updates = g where the update won, else 0; none for indices.
     *
     * @param x an operand
     * @param indicesAndUpdates operands in order
     * @return the node
     */
    public Node indexSet(Node x, List<Node> indicesAndUpdates) {
        return append("index_set", new Attrs(), operands(indicesAndUpdates, x));
    }

    /**
     * The op index_set: y = x, then y[i, j, …] = updates. If a position is written twice, the last update in row-major
     * order wins.
     *
     * <p>Only the winning update gets a gradient. The operands are x, an index for each of <code>axes</code>, and
     * updates, which broadcast to what <code>index</code> reads. Indices are as in <code>index</code>. PyTorch:
     * <code>index_put</code>. JAX: x.at[i, j].set. Neither defines which of several updates wins; PyTorch sends the
     * gradient to all of them, and JAX drops updates that are out of range.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, 0 where an update was written; d updates = g where the update won, else 0; none for indices.
     *
     * @param x an operand
     * @param indicesAndUpdates operands in order
     * @param options sets options
     * @return the node
     */
    public Node indexSet(Node x, List<Node> indicesAndUpdates, Consumer<IndexSetOptions> options) {
        IndexSetOptions given = given(new IndexSetOptions(), options);
        return append("index_set", given.attrs, operands(indicesAndUpdates, x));
    }

    /** Options of input. */
    public static final class InputOptions {
        private final Attrs attrs = new Attrs();

        private InputOptions() {}

        /**
         * Required dtype of the feed; default: any.
         *
         * @param dtype the value
         * @return these options
         */
        public InputOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }

        /**
         * Required shape of the feed, -1 for any extent; default: any.
         *
         * @param shape the value
         * @return these options
         */
        public InputOptions shape(long... shape) {
            attrs.with("shape", shape);
            return this;
        }

        /**
         * Whether the feed must be 0-d; default false.
         *
         * @param zeroD the value
         * @return these options
         */
        public InputOptions zeroD(boolean zeroD) {
            attrs.with("zero_d", zeroD);
            return this;
        }
    }

    /**
     * The op input: Data, fed with the request.
     *
     * <p>Its gradient is computed only if <code>wrt</code> names it. A declared <code>dtype</code> or
     * <code>shape</code> must match the feed.
     *
     * @param name a label for messages and lookups; empty for none
     * @return the node
     */
    public Node input(String name) {
        return append("input", new Attrs(), List.of()).named(name);
    }

    /**
     * The op input: Data, fed with the request.
     *
     * <p>Its gradient is computed only if <code>wrt</code> names it. A declared <code>dtype</code> or
     * <code>shape</code> must match the feed.
     *
     * @param name a label for messages and lookups; empty for none
     * @param options sets options
     * @return the node
     */
    public Node input(String name, Consumer<InputOptions> options) {
        InputOptions given = given(new InputOptions(), options);
        return append("input", given.attrs, List.of()).named(name);
    }

    /** Options of map. */
    public static final class MapOptions {
        private final Attrs attrs = new Attrs();

        private MapOptions() {}

        /**
         * Number of operands, the last ones, that are sequences; at least one; default 0.
         *
         * @param sequences the value
         * @return these options
         */
        public MapOptions sequences(long sequences) {
            attrs.with("sequences", sequences);
            return this;
        }

        /**
         * Number of entries computed in one batch; default: as many as fit.
         *
         * @param atOnce the value
         * @return these options
         */
        public MapOptions atOnce(long atOnce) {
            attrs.with("at_once", atOnce);
            return this;
        }
    }

    /**
     * The op map: stacks = body(consts, entry t of each sequence) for every t, in no particular order.
     *
     * <p>The operands are consts, then <code>sequences</code> tensors of equal leading extent. <code>at_once</code>
     * entries are computed in one batch. Each result of the body gives a stack [entries, …]. JAX: <code>lax.map</code>,
     * whose batch_size is <code>at_once</code>. JAX and PyTorch: <code>vmap</code>, which computes all entries in one
     * batch.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: a map of the body's gradient, summed over the entries for consts.
     *
     * @param body function of consts and one entry of each sequence; returns the values to stack
     * @param operands operands in order
     * @return the node
     */
    public Node map(GraphFunction body, List<Node> operands) {
        return append("map", new Attrs().with("body", body), operands(operands));
    }

    /**
     * The op map: stacks = body(consts, entry t of each sequence) for every t, in no particular order.
     *
     * <p>The operands are consts, then <code>sequences</code> tensors of equal leading extent. <code>at_once</code>
     * entries are computed in one batch. Each result of the body gives a stack [entries, …]. JAX: <code>lax.map</code>,
     * whose batch_size is <code>at_once</code>. JAX and PyTorch: <code>vmap</code>, which computes all entries in one
     * batch.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: a map of the body's gradient, summed over the entries for consts.
     *
     * @param body function of consts and one entry of each sequence; returns the values to stack
     * @param operands operands in order
     * @param options sets options
     * @return the node
     */
    public Node map(GraphFunction body, List<Node> operands, Consumer<MapOptions> options) {
        MapOptions given = given(new MapOptions(), options);
        return append("map", given.attrs.with("body", body), operands(operands));
    }

    /** Options of parameter. */
    public static final class ParameterOptions {
        private final Attrs attrs = new Attrs();

        private ParameterOptions() {}

        /**
         * Required dtype of the feed; default: any.
         *
         * @param dtype the value
         * @return these options
         */
        public ParameterOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }

        /**
         * Required shape of the feed, -1 for any extent; default: any.
         *
         * @param shape the value
         * @return these options
         */
        public ParameterOptions shape(long... shape) {
            attrs.with("shape", shape);
            return this;
        }

        /**
         * Whether the feed must be 0-d; default false.
         *
         * @param zeroD the value
         * @return these options
         */
        public ParameterOptions zeroD(boolean zeroD) {
            attrs.with("zero_d", zeroD);
            return this;
        }
    }

    /**
     * The op parameter: A trainable tensor, fed with the request.
     *
     * <p>Same as <code>input</code>, but part of <code>wrt</code> by default.
     *
     * @param name a label for messages and lookups; empty for none
     * @return the node
     */
    public Node parameter(String name) {
        return append("parameter", new Attrs(), List.of()).named(name);
    }

    /**
     * The op parameter: A trainable tensor, fed with the request.
     *
     * <p>Same as <code>input</code>, but part of <code>wrt</code> by default.
     *
     * @param name a label for messages and lookups; empty for none
     * @param options sets options
     * @return the node
     */
    public Node parameter(String name, Consumer<ParameterOptions> options) {
        ParameterOptions given = given(new ParameterOptions(), options);
        return append("parameter", given.attrs, List.of()).named(name);
    }

    /** Options of scan. */
    public static final class ScanOptions {
        private final Attrs attrs = new Attrs();

        private ScanOptions() {}

        /**
         * Number of operands that are initial values of carries; default 0.
         *
         * @param carries the value
         * @return these options
         */
        public ScanOptions carries(long carries) {
            attrs.with("carries", carries);
            return this;
        }

        /**
         * Number of operands, the last ones, that are sequences; default 0.
         *
         * @param sequences the value
         * @return these options
         */
        public ScanOptions sequences(long sequences) {
            attrs.with("sequences", sequences);
            return this;
        }

        /**
         * Number of steps; default: the sequences' number of entries.
         *
         * @param length the value
         * @return these options
         */
        public ScanOptions length(long length) {
            attrs.with("length", length);
            return this;
        }

        /**
         * Whether to run from the last entry to the first; default false.
         *
         * @param reverse the value
         * @return these options
         */
        public ScanOptions reverse(boolean reverse) {
            attrs.with("reverse", reverse);
            return this;
        }
    }

    /**
     * The op scan: carries, stacks = body(consts, carries, entry t of each sequence), step by step for t = 0 … length −
     * 1.
     *
     * <p>The operands are consts, then <code>carries</code> initial values, then <code>sequences</code> tensors that
     * are read along the leading axis; with <code>reverse</code>, from the last entry to the first. The body returns
     * the carries for the next step, of the same types, and then values to stack. Entry t of a stack is the value from
     * step t. Results: the last carries, then the stacks [length, …]. JAX: <code>lax.scan</code>, whose body can read
     * variables around it. PyTorch: a Python loop.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: a scan in the opposite direction that recomputes each step.
     *
     * @param body function of consts, carries and one entry of each sequence; returns carries, then values to stack
     * @param operands operands in order
     * @return the node
     */
    public Node scan(GraphFunction body, List<Node> operands) {
        return append("scan", new Attrs().with("body", body), operands(operands));
    }

    /**
     * The op scan: carries, stacks = body(consts, carries, entry t of each sequence), step by step for t = 0 … length −
     * 1.
     *
     * <p>The operands are consts, then <code>carries</code> initial values, then <code>sequences</code> tensors that
     * are read along the leading axis; with <code>reverse</code>, from the last entry to the first. The body returns
     * the carries for the next step, of the same types, and then values to stack. Entry t of a stack is the value from
     * step t. Results: the last carries, then the stacks [length, …]. JAX: <code>lax.scan</code>, whose body can read
     * variables around it. PyTorch: a Python loop.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: a scan in the opposite direction that recomputes each step.
     *
     * @param body function of consts, carries and one entry of each sequence; returns carries, then values to stack
     * @param operands operands in order
     * @param options sets options
     * @return the node
     */
    public Node scan(GraphFunction body, List<Node> operands, Consumer<ScanOptions> options) {
        ScanOptions given = given(new ScanOptions(), options);
        return append("scan", given.attrs.with("body", body), operands(operands));
    }

    /** Options of stack. */
    public static final class StackOptions {
        private final Attrs attrs = new Attrs();

        private StackOptions() {}

        /**
         * Position of the new axis in the result; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public StackOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }
    }

    /**
     * The op stack: y = the operands, all of one shape, joined along a new axis at position <code>axis</code> of the
     * result.
     *
     * <p>The result has their common dtype.
     *
     * <p>Gradient: for each operand, its part of g.
     *
     * @param x operands in order
     * @return the node
     */
    public Node stack(List<Node> x) {
        return append("stack", new Attrs(), operands(x));
    }

    /**
     * The op stack: y = the operands, all of one shape, joined along a new axis at position <code>axis</code> of the
     * result.
     *
     * <p>The result has their common dtype.
     *
     * <p>Gradient: for each operand, its part of g.
     *
     * @param x operands in order
     * @param options sets options
     * @return the node
     */
    public Node stack(List<Node> x, Consumer<StackOptions> options) {
        StackOptions given = given(new StackOptions(), options);
        return append("stack", given.attrs, operands(x));
    }

    /** Options of while. */
    public static final class WhileOptions {
        private final Attrs attrs = new Attrs();

        private WhileOptions() {}

        /**
         * Number of operands, the last ones, that are initial values of carries; default 0.
         *
         * @param carries the value
         * @return these options
         */
        public WhileOptions carries(long carries) {
            attrs.with("carries", carries);
            return this;
        }
    }

    /**
     * The op while: Repeats carries = body(consts, carries) while condition(consts, carries) is true, at most
     * <code>max_steps</code> times.
     *
     * <p>The condition returns a bool []. It is evaluated before each step, and after the last step that is allowed.
     * Results: the carries; <code>steps</code>, int64 [], the number of steps that ran; <code>finished</code>, bool [],
     * false if the loop stopped at the bound. JAX: <code>lax.while_loop</code>, which has no bound and supports
     * forward-mode derivatives only. PyTorch: a Python loop.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: backward over the steps that ran, recomputing each; the condition and <code>steps</code> have none.
     *
     * @param condition function of consts and carries; returns whether to continue, a bool []
     * @param body function of consts and carries; returns the next carries
     * @param maxSteps maximum number of steps
     * @param operands operands in order
     * @return the node
     */
    public Node while_(GraphFunction condition, GraphFunction body, long maxSteps, List<Node> operands) {
        return append("while", new Attrs().with("condition", condition).with("body", body).with("max_steps", maxSteps), operands(operands));
    }

    /**
     * The op while: Repeats carries = body(consts, carries) while condition(consts, carries) is true, at most
     * <code>max_steps</code> times.
     *
     * <p>The condition returns a bool []. It is evaluated before each step, and after the last step that is allowed.
     * Results: the carries; <code>steps</code>, int64 [], the number of steps that ran; <code>finished</code>, bool [],
     * false if the loop stopped at the bound. JAX: <code>lax.while_loop</code>, which has no bound and supports
     * forward-mode derivatives only. PyTorch: a Python loop.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: backward over the steps that ran, recomputing each; the condition and <code>steps</code> have none.
     *
     * @param condition function of consts and carries; returns whether to continue, a bool []
     * @param body function of consts and carries; returns the next carries
     * @param maxSteps maximum number of steps
     * @param operands operands in order
     * @param options sets options
     * @return the node
     */
    public Node while_(GraphFunction condition, GraphFunction body, long maxSteps, List<Node> operands, Consumer<WhileOptions> options) {
        WhileOptions given = given(new WhileOptions(), options);
        return append("while", given.attrs.with("condition", condition).with("body", body).with("max_steps", maxSteps), operands(operands));
    }
}
