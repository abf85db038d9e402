// Written by `python -m clients.ops` from the registry of ops: edit that.
package example.gradserve;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** The ops that have no operand, or a list of them, as methods of a graph. */
public abstract sealed class GraphOps permits Graph {
    GraphOps() {}

    /** Appends a node. Operands at the end may be null: then they are absent, as attributes are. */
    abstract Node append(String op, Attrs attrs, List<Node> operands);

    private static <T> T given(T options, Consumer<? super T> stating) {
        stating.accept(options);
        return options;
    }

    /** The opset that graphs have an op, or an attribute as op.attribute, since. */
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

    /** What arange takes beside what is required. */
    public static final class ArangeOptions {
        private final Attrs attrs = new Attrs();

        private ArangeOptions() {}

        /**
         * The first number; 0.0 unless stated.
         *
         * @param start the value
         * @return these options
         */
        public ArangeOptions start(Number start) {
            attrs.with("start", start);
            return this;
        }

        /**
         * The distance; negative to count down, not 0; 1.0 unless stated.
         *
         * @param step the value
         * @return these options
         */
        public ArangeOptions step(Number step) {
            attrs.with("step", step);
            return this;
        }

        /**
         * The result's dtype; int64 unless stated.
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
     * The op arange: Evenly spaced numbers: y[i] = start + i · step, for as long as they lie before stop.
     *
     * <p>Result [⌈(stop − start) / step⌉], at least 0. As NumPy's arange, but exact: integer dtypes need a whole start
     * and step, and a range that they hold.
     *
     * @param stop the end, not included
     * @return the node
     */
    public Node arange(Number stop) {
        return append("arange", new Attrs().with("stop", stop), List.of());
    }

    /**
     * The op arange: Evenly spaced numbers: y[i] = start + i · step, for as long as they lie before stop.
     *
     * <p>Result [⌈(stop − start) / step⌉], at least 0. As NumPy's arange, but exact: integer dtypes need a whole start
     * and step, and a range that they hold.
     *
     * @param stop the end, not included
     * @param options states what is optional
     * @return the node
     */
    public Node arange(Number stop, Consumer<ArangeOptions> options) {
        ArangeOptions given = given(new ArangeOptions(), options);
        return append("arange", given.attrs.with("stop", stop), List.of());
    }

    /** What call takes beside what is required. */
    public static final class CallOpOptions {
        private final Attrs attrs = new Attrs();

        private CallOpOptions() {}

        /**
         * Of operands, results and cotangents: a cotangent for each float operand; absent: the body's.
         *
         * @param derivative the value
         * @return these options
         */
        public CallOpOptions derivative(GraphFunction derivative) {
            attrs.with("derivative", derivative);
            return this;
        }

        /**
         * Keep nothing inside for the way back, but compute it again; false unless stated.
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
     * The op call: body(operands).
     *
     * <p>With <code>derivative</code>, a function of the operands, the results and the cotangents of the results, which
     * gives one cotangent for each float operand: that is differentiated by, and nothing else. With
     * <code>recompute</code>, nothing inside is kept for the way back, which computes the body once more. With
     * <code>derivative</code>, JAX's <code>custom_vjp</code> and PyTorch's <code>autograd.Function</code>, whose rules
     * are given what they have kept; with <code>recompute</code>, JAX's and PyTorch's <code>checkpoint</code>.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: that of the body, or its own <code>derivative</code>.
     *
     * @param body of the operands
     * @param operands operands, in their order
     * @return the node
     */
    public Node call(GraphFunction body, List<Node> operands) {
        return append("call", new Attrs().with("body", body), operands(operands));
    }

    /**
     * The op call: body(operands).
     *
     * <p>With <code>derivative</code>, a function of the operands, the results and the cotangents of the results, which
     * gives one cotangent for each float operand: that is differentiated by, and nothing else. With
     * <code>recompute</code>, nothing inside is kept for the way back, which computes the body once more. With
     * <code>derivative</code>, JAX's <code>custom_vjp</code> and PyTorch's <code>autograd.Function</code>, whose rules
     * are given what they have kept; with <code>recompute</code>, JAX's and PyTorch's <code>checkpoint</code>.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: that of the body, or its own <code>derivative</code>.
     *
     * @param body of the operands
     * @param operands operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node call(GraphFunction body, List<Node> operands, Consumer<CallOpOptions> options) {
        CallOpOptions given = given(new CallOpOptions(), options);
        return append("call", given.attrs.with("body", body), operands(operands));
    }

    /** What cat takes beside what is required. */
    public static final class CatOptions {
        private final Attrs attrs = new Attrs();

        private CatOptions() {}

        /**
         * The axis to join along; 0 unless stated.
         *
         * @param axis the value
         * @return these options
         */
        public CatOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * The operands' extents on the axis, checked where given.
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
     * The op cat: y = the operands one after the other along <code>axis</code>; elsewhere their extents are the same.
     *
     * <p>The result has their common dtype. <code>sizes</code>, where given, must be their extents on the axis.
     *
     * <p>Gradient: g, cut apart.
     *
     * @param x operands, in their order
     * @return the node
     */
    public Node cat(List<Node> x) {
        return append("cat", new Attrs(), operands(x));
    }

    /**
     * The op cat: y = the operands one after the other along <code>axis</code>; elsewhere their extents are the same.
     *
     * <p>The result has their common dtype. <code>sizes</code>, where given, must be their extents on the axis.
     *
     * <p>Gradient: g, cut apart.
     *
     * @param x operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node cat(List<Node> x, Consumer<CatOptions> options) {
        CatOptions given = given(new CatOptions(), options);
        return append("cat", given.attrs, operands(x));
    }

    /**
     * The op cond: then(operands), where the predicate, a bool [], holds; else otherwise(operands). Only one of them
     * runs.
     *
     * <p>Both give results of the same types. JAX's <code>lax.cond</code>, PyTorch's <code>cond</code>.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: that of the function that ran; the other adds exact zeros.
     *
     * @param then of the operands behind the predicate, where that holds
     * @param otherwise of the same, where it does not
     * @param predicate an operand
     * @param operands operands, in their order
     * @return the node
     */
    public Node cond(GraphFunction then, GraphFunction otherwise, Node predicate, Node... operands) {
        return append("cond", new Attrs().with("then", then).with("otherwise", otherwise), operands(List.of(operands), predicate));
    }

    /**
     * The op constant: A tensor that is part of the graph: y = value.
     *
     * @param value the tensor
     * @return the node
     */
    public Node constant(Tensor value) {
        return append("constant", new Attrs().with("value", value), List.of());
    }

    /**
     * The op einsum: y[output letters] = Σ a[letters] · b[letters] · … over all letters that the output does not have.
     *
     * <p><code>equation</code> is, for two operands, "ab,bc-&gt;ac": a letter (a–z, A–Z) for each axis, a comma between
     * operands, and after the arrow the axes of the result. A letter stands for one extent, at most once in each
     * operand. No ellipsis and no implicit output; spaces do not count. One operand is allowed as well, 32 at most. The
     * result has the common dtype of the operands, as NumPy's.
     *
     * <p>Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs
     * more than the equation written as one loop (greedy order, as in numpy.einsum_path).
     *
     * <p>Gradient: for each operand the einsum of g with the other operands.
     *
     * @param equation letters of each operand, and after -&gt; those of the result
     * @param a an operand
     * @param b operands, in their order
     * @return the node
     */
    public Node einsum(String equation, Node a, Node... b) {
        return append("einsum", new Attrs().with("equation", equation), operands(List.of(b), a));
    }

    /** What fixedPoint takes beside what is required. */
    public static final class FixedPointOptions {
        private final Attrs attrs = new Attrs();

        private FixedPointOptions() {}

        /**
         * How many operands, the last ones, are x at first; at least one; 0 unless stated.
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
     * The op fixed_point: x = body(consts, x), again and again until max |Δx| ≤ tolerance · (1 + max |x|), at most
     * <code>max_steps</code> times.
     *
     * <p>x are the <code>carries</code>, floats, all of them together; max |x| is that of the new x. What is not finite
     * ends the iteration, unfinished. Results: x; <code>steps</code>, int64 [], those that ran; <code>finished</code>,
     * bool []. The gradient is implicit, as that of JAX's <code>lax.custom_root</code>, which is given a solver; of
     * PyTorch, a loop of Python and a rule.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none by the first x.
     *
     * @param body of consts and x: the next x
     * @param tolerance how much may change, relative to 1 + max |x|; 0: nothing
     * @param maxSteps how many steps there may be at most
     * @param operands operands, in their order
     * @return the node
     */
    public Node fixedPoint(GraphFunction body, double tolerance, long maxSteps, List<Node> operands) {
        return append("fixed_point", new Attrs().with("body", body).with("tolerance", tolerance).with("max_steps", maxSteps), operands(operands));
    }

    /**
     * The op fixed_point: x = body(consts, x), again and again until max |Δx| ≤ tolerance · (1 + max |x|), at most
     * <code>max_steps</code> times.
     *
     * <p>x are the <code>carries</code>, floats, all of them together; max |x| is that of the new x. What is not finite
     * ends the iteration, unfinished. Results: x; <code>steps</code>, int64 [], those that ran; <code>finished</code>,
     * bool []. The gradient is implicit, as that of JAX's <code>lax.custom_root</code>, which is given a solver; of
     * PyTorch, a loop of Python and a rule.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none by the first x.
     *
     * @param body of consts and x: the next x
     * @param tolerance how much may change, relative to 1 + max |x|; 0: nothing
     * @param maxSteps how many steps there may be at most
     * @param operands operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node fixedPoint(GraphFunction body, double tolerance, long maxSteps, List<Node> operands, Consumer<FixedPointOptions> options) {
        FixedPointOptions given = given(new FixedPointOptions(), options);
        return append("fixed_point", given.attrs.with("body", body).with("tolerance", tolerance).with("max_steps", maxSteps), operands(operands));
    }

    /** What full takes beside what is required. */
    public static final class FullOptions {
        private final Attrs attrs = new Attrs();

        private FullOptions() {}

        /**
         * The number; 0.0 unless stated.
         *
         * @param fill the value
         * @return these options
         */
        public FullOptions fill(Number fill) {
            attrs.with("fill", fill);
            return this;
        }

        /**
         * The result's dtype; float64 unless stated.
         *
         * @param dtype the value
         * @return these options
         */
        public FullOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }

        /**
         * An infinity or NaN, in place of <code>fill</code>; of a float dtype; since opset 2; one of inf, -inf, nan.
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
     * The op full: A tensor of one number, made on the server: y[…] = fill.
     *
     * <p>An absent or empty <code>shape</code> makes a 0-d tensor. An infinity or NaN is stated by
     * <code>fill_as</code>. PyTorch's and JAX's <code>full</code>.
     *
     * @param shape the result's shape; [] unless stated
     * @return the node
     */
    public Node full(long... shape) {
        return append("full", new Attrs().with("shape", shape), List.of());
    }

    /**
     * The op full: A tensor of one number, made on the server: y[…] = fill.
     *
     * <p>An absent or empty <code>shape</code> makes a 0-d tensor. An infinity or NaN is stated by
     * <code>fill_as</code>. PyTorch's and JAX's <code>full</code>.
     *
     * @param shape the result's shape; [] unless stated
     * @param options states what is optional
     * @return the node
     */
    public Node full(long[] shape, Consumer<FullOptions> options) {
        FullOptions given = given(new FullOptions(), options);
        return append("full", given.attrs.with("shape", shape), List.of());
    }

    /** What index takes beside what is required. */
    public static final class IndexOptions {
        private final Attrs attrs = new Attrs();

        private IndexOptions() {}

        /**
         * The axis that each index is of; absent: the first ones, in their order.
         *
         * @param axes the value
         * @return these options
         */
        public IndexOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether a negative index counts from the end: −1 is the last; false unless stated.
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
     * The op index: y = x[i, j, …]: the entries, or slices, at index tensors, one for each of <code>axes</code>, which
     * broadcast together.
     *
     * <p>As NumPy's x[i, j]: of axes that are side by side, the indices' axes take the place; of others, they come
     * first. Indices lie in [0, extent); with <code>from_end</code>, in [−extent, extent), and negative ones count from
     * the end. PyTorch's and JAX's x[i, j], which count negative ones always; PyTorch refuses those outside, as here,
     * and JAX moves them.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
     *
     * @param x an operand
     * @param indices operands, in their order
     * @return the node
     */
    public Node index(Node x, List<Node> indices) {
        return append("index", new Attrs(), operands(indices, x));
    }

    /**
     * The op index: y = x[i, j, …]: the entries, or slices, at index tensors, one for each of <code>axes</code>, which
     * broadcast together.
     *
     * <p>As NumPy's x[i, j]: of axes that are side by side, the indices' axes take the place; of others, they come
     * first. Indices lie in [0, extent); with <code>from_end</code>, in [−extent, extent), and negative ones count from
     * the end. PyTorch's and JAX's x[i, j], which count negative ones always; PyTorch refuses those outside, as here,
     * and JAX moves them.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
     *
     * @param x an operand
     * @param indices operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node index(Node x, List<Node> indices, Consumer<IndexOptions> options) {
        IndexOptions given = given(new IndexOptions(), options);
        return append("index", given.attrs, operands(indices, x));
    }

    /** What indexAdd takes beside what is required. */
    public static final class IndexAddOptions {
        private final Attrs attrs = new Attrs();

        private IndexAddOptions() {}

        /**
         * The axis that each index is of; absent: the first ones, in their order.
         *
         * @param axes the value
         * @return these options
         */
        public IndexAddOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether a negative index counts from the end: −1 is the last; false unless stated.
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
     * The op index_add: y = x, and then y[i, j, …] += updates, entry by entry: repeated indices accumulate.
     *
     * <p>Operands: x, an index for each of <code>axes</code>, updates, which broadcast to what <code>index</code>
     * reads. Indices as those of <code>index</code>. PyTorch's <code>index_put</code> with accumulate; JAX's x.at[i,
     * j].add, which drops updates outside.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, d updates = index(g, indices); none for indices.
     *
     * @param x an operand
     * @param indicesAndUpdates operands, in their order
     * @return the node
     */
    public Node indexAdd(Node x, List<Node> indicesAndUpdates) {
        return append("index_add", new Attrs(), operands(indicesAndUpdates, x));
    }

    /**
     * The op index_add: y = x, and then y[i, j, …] += updates, entry by entry: repeated indices accumulate.
     *
     * <p>Operands: x, an index for each of <code>axes</code>, updates, which broadcast to what <code>index</code>
     * reads. Indices as those of <code>index</code>. PyTorch's <code>index_put</code> with accumulate; JAX's x.at[i,
     * j].add, which drops updates outside.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, d updates = index(g, indices); none for indices.
     *
     * @param x an operand
     * @param indicesAndUpdates operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node indexAdd(Node x, List<Node> indicesAndUpdates, Consumer<IndexAddOptions> options) {
        IndexAddOptions given = given(new IndexAddOptions(), options);
        return append("index_add", given.attrs, operands(indicesAndUpdates, x));
    }

    /** What indexSet takes beside what is required. */
    public static final class IndexSetOptions {
        private final Attrs attrs = new Attrs();

        private IndexSetOptions() {}

        /**
         * The axis that each index is of; absent: the first ones, in their order.
         *
         * @param axes the value
         * @return these options
         */
        public IndexSetOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether a negative index counts from the end: −1 is the last; false unless stated.
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
     * The op index_set: y = x, and then y[i, j, …] = updates: where one place is written twice, the last in row-major
     * order stands.
     *
     * <p>It takes the gradient. Operands: x, an index for each of <code>axes</code>, updates, which broadcast to what
     * <code>index</code> reads. Indices as those of <code>index</code>. PyTorch's <code>index_put</code>, JAX's x.at[i,
     * j].set: neither says which of several stands, and the gradient of PyTorch's goes to all of them; JAX drops
     * updates outside.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, 0 where something was written; d updates = g where they stand, else 0; none for indices.
     *
     * @param x an operand
     * @param indicesAndUpdates operands, in their order
     * @return the node
     */
    public Node indexSet(Node x, List<Node> indicesAndUpdates) {
        return append("index_set", new Attrs(), operands(indicesAndUpdates, x));
    }

    /**
     * The op index_set: y = x, and then y[i, j, …] = updates: where one place is written twice, the last in row-major
     * order stands.
     *
     * <p>It takes the gradient. Operands: x, an index for each of <code>axes</code>, updates, which broadcast to what
     * <code>index</code> reads. Indices as those of <code>index</code>. PyTorch's <code>index_put</code>, JAX's x.at[i,
     * j].set: neither says which of several stands, and the gradient of PyTorch's goes to all of them; JAX drops
     * updates outside.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, 0 where something was written; d updates = g where they stand, else 0; none for indices.
     *
     * @param x an operand
     * @param indicesAndUpdates operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node indexSet(Node x, List<Node> indicesAndUpdates, Consumer<IndexSetOptions> options) {
        IndexSetOptions given = given(new IndexSetOptions(), options);
        return append("index_set", given.attrs, operands(indicesAndUpdates, x));
    }

    /** What input takes beside what is required. */
    public static final class InputOptions {
        private final Attrs attrs = new Attrs();

        private InputOptions() {}

        /**
         * Declares the feed's dtype; absent: any.
         *
         * @param dtype the value
         * @return these options
         */
        public InputOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }

        /**
         * Declares the feed's shape, -1 for a free extent; absent: any.
         *
         * @param shape the value
         * @return these options
         */
        public InputOptions shape(long... shape) {
            attrs.with("shape", shape);
            return this;
        }

        /**
         * Declares a 0-d feed; false unless stated.
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
     * <p>Differentiated with respect to only when <code>wrt</code> names it. A declared <code>dtype</code> or
     * <code>shape</code> must match the feed.
     *
     * @param name a label for messages and look-ups; empty for none
     * @return the node
     */
    public Node input(String name) {
        return append("input", new Attrs(), List.of()).named(name);
    }

    /**
     * The op input: Data, fed with the request.
     *
     * <p>Differentiated with respect to only when <code>wrt</code> names it. A declared <code>dtype</code> or
     * <code>shape</code> must match the feed.
     *
     * @param name a label for messages and look-ups; empty for none
     * @param options states what is optional
     * @return the node
     */
    public Node input(String name, Consumer<InputOptions> options) {
        InputOptions given = given(new InputOptions(), options);
        return append("input", given.attrs, List.of()).named(name);
    }

    /** What map takes beside what is required. */
    public static final class MapOptions {
        private final Attrs attrs = new Attrs();

        private MapOptions() {}

        /**
         * How many operands, the last ones, are gone through; at least one; 0 unless stated.
         *
         * @param sequences the value
         * @return these options
         */
        public MapOptions sequences(long sequences) {
            attrs.with("sequences", sequences);
            return this;
        }

        /**
         * How many entries are computed in one batch; absent: as many as fit.
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
     * The op map: stacks = body(consts, entry t of each sequence), for every t, in no order.
     *
     * <p>Operands are consts, then <code>sequences</code> tensors of equal leading extent. <code>at_once</code> entries
     * are computed in one batch. Results: for each of the body's a stack [entries, …]. JAX's <code>lax.map</code>,
     * whose batch_size is <code>at_once</code>; JAX's and PyTorch's <code>vmap</code>, which computes all entries in
     * one batch.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: a map of the body's, summed over the entries for consts.
     *
     * @param body of consts and one entry of each sequence: what is stacked
     * @param operands operands, in their order
     * @return the node
     */
    public Node map(GraphFunction body, List<Node> operands) {
        return append("map", new Attrs().with("body", body), operands(operands));
    }

    /**
     * The op map: stacks = body(consts, entry t of each sequence), for every t, in no order.
     *
     * <p>Operands are consts, then <code>sequences</code> tensors of equal leading extent. <code>at_once</code> entries
     * are computed in one batch. Results: for each of the body's a stack [entries, …]. JAX's <code>lax.map</code>,
     * whose batch_size is <code>at_once</code>; JAX's and PyTorch's <code>vmap</code>, which computes all entries in
     * one batch.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: a map of the body's, summed over the entries for consts.
     *
     * @param body of consts and one entry of each sequence: what is stacked
     * @param operands operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node map(GraphFunction body, List<Node> operands, Consumer<MapOptions> options) {
        MapOptions given = given(new MapOptions(), options);
        return append("map", given.attrs.with("body", body), operands(operands));
    }

    /** What parameter takes beside what is required. */
    public static final class ParameterOptions {
        private final Attrs attrs = new Attrs();

        private ParameterOptions() {}

        /**
         * Declares the feed's dtype; absent: any.
         *
         * @param dtype the value
         * @return these options
         */
        public ParameterOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }

        /**
         * Declares the feed's shape, -1 for a free extent; absent: any.
         *
         * @param shape the value
         * @return these options
         */
        public ParameterOptions shape(long... shape) {
            attrs.with("shape", shape);
            return this;
        }

        /**
         * Declares a 0-d feed; false unless stated.
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
     * <p>As <code>input</code>, but part of <code>wrt</code> by default.
     *
     * @param name a label for messages and look-ups; empty for none
     * @return the node
     */
    public Node parameter(String name) {
        return append("parameter", new Attrs(), List.of()).named(name);
    }

    /**
     * The op parameter: A trainable tensor, fed with the request.
     *
     * <p>As <code>input</code>, but part of <code>wrt</code> by default.
     *
     * @param name a label for messages and look-ups; empty for none
     * @param options states what is optional
     * @return the node
     */
    public Node parameter(String name, Consumer<ParameterOptions> options) {
        ParameterOptions given = given(new ParameterOptions(), options);
        return append("parameter", given.attrs, List.of()).named(name);
    }

    /** What scan takes beside what is required. */
    public static final class ScanOptions {
        private final Attrs attrs = new Attrs();

        private ScanOptions() {}

        /**
         * How many operands are initial values of carries; 0 unless stated.
         *
         * @param carries the value
         * @return these options
         */
        public ScanOptions carries(long carries) {
            attrs.with("carries", carries);
            return this;
        }

        /**
         * How many operands, the last ones, are gone through; 0 unless stated.
         *
         * @param sequences the value
         * @return these options
         */
        public ScanOptions sequences(long sequences) {
            attrs.with("sequences", sequences);
            return this;
        }

        /**
         * How many steps; absent: as many as the sequences have entries.
         *
         * @param length the value
         * @return these options
         */
        public ScanOptions length(long length) {
            attrs.with("length", length);
            return this;
        }

        /**
         * From the last entry to the first; false unless stated.
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
     * The op scan: carries, stacks = body, step by step: for t = 0 … length − 1, body(consts, carries, entry t of each
     * sequence).
     *
     * <p>The body gives the carries for the next step, of the same types, and then values that are stacked. Operands
     * are consts, then <code>carries</code> initial values, then <code>sequences</code> tensors whose entries along the
     * leading axis it goes through, with <code>reverse</code> from the last; entry t of a stack is what step t gave.
     * Results: the last carries, then the stacks [length, …]. JAX's <code>lax.scan</code>, whose body may read what is
     * around it; of PyTorch, a loop of Python.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: a scan the other way round, which computes each step again.
     *
     * @param body of consts, carries and one entry of each sequence: carries, and what is stacked
     * @param operands operands, in their order
     * @return the node
     */
    public Node scan(GraphFunction body, List<Node> operands) {
        return append("scan", new Attrs().with("body", body), operands(operands));
    }

    /**
     * The op scan: carries, stacks = body, step by step: for t = 0 … length − 1, body(consts, carries, entry t of each
     * sequence).
     *
     * <p>The body gives the carries for the next step, of the same types, and then values that are stacked. Operands
     * are consts, then <code>carries</code> initial values, then <code>sequences</code> tensors whose entries along the
     * leading axis it goes through, with <code>reverse</code> from the last; entry t of a stack is what step t gave.
     * Results: the last carries, then the stacks [length, …]. JAX's <code>lax.scan</code>, whose body may read what is
     * around it; of PyTorch, a loop of Python.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: a scan the other way round, which computes each step again.
     *
     * @param body of consts, carries and one entry of each sequence: carries, and what is stacked
     * @param operands operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node scan(GraphFunction body, List<Node> operands, Consumer<ScanOptions> options) {
        ScanOptions given = given(new ScanOptions(), options);
        return append("scan", given.attrs.with("body", body), operands(operands));
    }

    /** What stack takes beside what is required. */
    public static final class StackOptions {
        private final Attrs attrs = new Attrs();

        private StackOptions() {}

        /**
         * The new axis, counted in the result; 0 unless stated.
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
     * The op stack: y = the operands, all of one shape, one after the other along a new axis; <code>axis</code> is its
     * place in the result.
     *
     * <p>The result has their common dtype.
     *
     * <p>Gradient: to each operand its part of g.
     *
     * @param x operands, in their order
     * @return the node
     */
    public Node stack(List<Node> x) {
        return append("stack", new Attrs(), operands(x));
    }

    /**
     * The op stack: y = the operands, all of one shape, one after the other along a new axis; <code>axis</code> is its
     * place in the result.
     *
     * <p>The result has their common dtype.
     *
     * <p>Gradient: to each operand its part of g.
     *
     * @param x operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node stack(List<Node> x, Consumer<StackOptions> options) {
        StackOptions given = given(new StackOptions(), options);
        return append("stack", given.attrs, operands(x));
    }

    /** What while takes beside what is required. */
    public static final class WhileOptions {
        private final Attrs attrs = new Attrs();

        private WhileOptions() {}

        /**
         * How many operands, the last ones, are initial values of carries; 0 unless stated.
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
     * The op while: carries = body(consts, carries), again and again while condition(consts, carries) holds.
     *
     * <p>At most <code>max_steps</code> times. The condition gives a bool []; it is looked at before each step, and
     * once more after the last one that is allowed. Results: the carries; <code>steps</code>, int64 [], those that ran;
     * <code>finished</code>, bool [], false where the bound ended it. JAX's <code>lax.while_loop</code>, which has no
     * bound, and is differentiated forwards alone; of PyTorch, a loop of Python.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: back over the steps that ran, each computed again; none by the condition, and none of
     * <code>steps</code>.
     *
     * @param condition of consts and carries: whether to go on, a bool []
     * @param body of consts and carries: the carries after a step
     * @param maxSteps how many steps there may be at most
     * @param operands operands, in their order
     * @return the node
     */
    public Node while_(GraphFunction condition, GraphFunction body, long maxSteps, List<Node> operands) {
        return append("while", new Attrs().with("condition", condition).with("body", body).with("max_steps", maxSteps), operands(operands));
    }

    /**
     * The op while: carries = body(consts, carries), again and again while condition(consts, carries) holds.
     *
     * <p>At most <code>max_steps</code> times. The condition gives a bool []; it is looked at before each step, and
     * once more after the last one that is allowed. Results: the carries; <code>steps</code>, int64 [], those that ran;
     * <code>finished</code>, bool [], false where the bound ended it. JAX's <code>lax.while_loop</code>, which has no
     * bound, and is differentiated forwards alone; of PyTorch, a loop of Python.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: back over the steps that ran, each computed again; none by the condition, and none of
     * <code>steps</code>.
     *
     * @param condition of consts and carries: whether to go on, a bool []
     * @param body of consts and carries: the carries after a step
     * @param maxSteps how many steps there may be at most
     * @param operands operands, in their order
     * @param options states what is optional
     * @return the node
     */
    public Node while_(GraphFunction condition, GraphFunction body, long maxSteps, List<Node> operands, Consumer<WhileOptions> options) {
        WhileOptions given = given(new WhileOptions(), options);
        return append("while", given.attrs.with("condition", condition).with("body", body).with("max_steps", maxSteps), operands(operands));
    }
}
