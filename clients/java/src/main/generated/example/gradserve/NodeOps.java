// Written by `python -m clients.ops` from the op registry: do not edit.
package example.gradserve;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;

/** The ops as methods of their first operand. */
public abstract sealed class NodeOps permits Node {
    NodeOps() {}

    /** Appends a node. Null attributes, and null operands at the end, are absent. */
    abstract Node append(String op, Attrs attrs, List<Node> operands);

    private static <T> T given(T options, Consumer<? super T> stating) {
        stating.accept(options);
        return options;
    }

    private List<Node> operands(Node... others) {
        List<Node> operands = new ArrayList<>(others.length + 1);
        operands.add((Node) this);
        Collections.addAll(operands, others);
        return operands;
    }

    /**
     * The op abs: y = |x|; real for a complex x. At 0 the gradient is 0, in every order.
     *
     * <p>Gradient: g · sign x; for a complex x, g · x / |x|.
     *
     * @return the node
     */
    public Node abs() {
        return append("abs", new Attrs(), operands());
    }

    /**
     * The op acos: y = arccos x in [0, π], NaN for |x| &gt; 1. At ±1 the derivative is infinite.
     *
     * <p>Gradient: −g / √(1 − x²).
     *
     * @return the node
     */
    public Node acos() {
        return append("acos", new Attrs(), operands());
    }

    /**
     * The op acosh: y = arcosh x, NaN for x &lt; 1. At 1 the derivative is infinite.
     *
     * <p>Gradient: g / sinh y = g / √(x² − 1).
     *
     * @return the node
     */
    public Node acosh() {
        return append("acosh", new Attrs(), operands());
    }

    /**
     * The op adaptive_avg_pool: y[…, i] = the mean of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉. Integers
     * give float64.
     *
     * <p>Pools as many of the last axes as <code>sizes</code> has entries. PyTorch: <code>adaptive_avg_pool1d</code>,
     * 2d and 3d. JAX has no equivalent.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (number of elements in the window), added to each of them.
     *
     * <p>This node is the operand x.
     *
     * @param sizes number of windows on each of the last axes
     * @return the node
     */
    public Node adaptiveAvgPool(long... sizes) {
        return append("adaptive_avg_pool", new Attrs().with("sizes", sizes), operands());
    }

    /**
     * The op adaptive_max_pool: y[…, i] = the maximum of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN if
     * the window contains NaN.
     *
     * <p>Pools as many of the last axes as <code>sizes</code> has entries. PyTorch: <code>adaptive_max_pool1d</code>,
     * 2d and 3d. JAX has no equivalent.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>This node is the operand x.
     *
     * @param sizes number of windows on each of the last axes
     * @return the node
     */
    public Node adaptiveMaxPool(long... sizes) {
        return append("adaptive_max_pool", new Attrs().with("sizes", sizes), operands());
    }

    /**
     * The op add: y = a + b, elementwise, with NumPy broadcasting.
     *
     * <p>Gradient: da = g, db = g.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node add(Node b) {
        return append("add", new Attrs(), operands(b));
    }

    /**
     * The op add_scalar: y = x + scalar.
     *
     * <p>Gradient: g.
     *
     * <p>This node is the operand x.
     *
     * @param scalar constant operand
     * @return the node
     */
    public Node addScalar(double scalar) {
        return append("add_scalar", new Attrs().with("scalar", scalar), operands());
    }

    /** Options of all. */
    public static final class AllOptions {
        private final Attrs attrs = new Attrs();

        private AllOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public AllOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public AllOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op all: y = whether all elements over axes are true; nonzero numbers are true. True if no elements are
     * reduced.
     *
     * @return the node
     */
    public Node all() {
        return append("all", new Attrs(), operands());
    }

    /**
     * The op all: y = whether all elements over axes are true; nonzero numbers are true. True if no elements are
     * reduced.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node all(Consumer<AllOptions> options) {
        AllOptions given = given(new AllOptions(), options);
        return append("all", given.attrs, operands());
    }

    /**
     * The op angle: y = the angle of x in [−π, π]: atan2(Im x, Re x); 0 or π for a real x. NaN if a part is NaN.
     *
     * <p>The branch cut is the negative real axis; on it, the sign of the imaginary zero selects the side (as in C99's
     * carg). At 0 the gradient is 0, as in PyTorch; in JAX it is NaN.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: i · g · x / |x|², 0 at 0; none for a real x.
     *
     * @return the node
     */
    public Node angle() {
        return append("angle", new Attrs(), operands());
    }

    /** Options of any. */
    public static final class AnyOptions {
        private final Attrs attrs = new Attrs();

        private AnyOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public AnyOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public AnyOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op any: y = whether any element over axes is true; nonzero numbers are true. False if no elements are
     * reduced.
     *
     * @return the node
     */
    public Node any() {
        return append("any", new Attrs(), operands());
    }

    /**
     * The op any: y = whether any element over axes is true; nonzero numbers are true. False if no elements are
     * reduced.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node any(Consumer<AnyOptions> options) {
        AnyOptions given = given(new AnyOptions(), options);
        return append("any", given.attrs, operands());
    }

    /** Options of argmax. */
    public static final class ArgmaxOptions {
        private final Attrs attrs = new Attrs();

        private ArgmaxOptions() {}

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public ArgmaxOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op argmax: y = the int64 position of the largest element along <code>axis</code>: the first in a tie; the
     * first NaN if any.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to search
     * @return the node
     */
    public Node argmax(long axis) {
        return append("argmax", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op argmax: y = the int64 position of the largest element along <code>axis</code>: the first in a tie; the
     * first NaN if any.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to search
     * @param options sets options
     * @return the node
     */
    public Node argmax(long axis, Consumer<ArgmaxOptions> options) {
        ArgmaxOptions given = given(new ArgmaxOptions(), options);
        return append("argmax", given.attrs.with("axis", axis), operands());
    }

    /** Options of argmin. */
    public static final class ArgminOptions {
        private final Attrs attrs = new Attrs();

        private ArgminOptions() {}

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public ArgminOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op argmin: y = the int64 position of the smallest element along <code>axis</code>: the first in a tie; the
     * first NaN if any.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to search
     * @return the node
     */
    public Node argmin(long axis) {
        return append("argmin", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op argmin: y = the int64 position of the smallest element along <code>axis</code>: the first in a tie; the
     * first NaN if any.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to search
     * @param options sets options
     * @return the node
     */
    public Node argmin(long axis, Consumer<ArgminOptions> options) {
        ArgminOptions given = given(new ArgminOptions(), options);
        return append("argmin", given.attrs.with("axis", axis), operands());
    }

    /**
     * The op argsort: y = the int64 positions that sort x in ascending order along an axis; equal entries keep their
     * order.
     *
     * <p>NaN comes last.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to sort along
     * @return the node
     */
    public Node argsort(long axis) {
        return append("argsort", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op asin: y = arcsin x in [−π/2, π/2], NaN for |x| &gt; 1. At ±1 the derivative is infinite.
     *
     * <p>Gradient: g / √(1 − x²).
     *
     * @return the node
     */
    public Node asin() {
        return append("asin", new Attrs(), operands());
    }

    /**
     * The op asinh: y = arsinh x.
     *
     * <p>Gradient: g / cosh y = g / √(x² + 1).
     *
     * @return the node
     */
    public Node asinh() {
        return append("asinh", new Attrs(), operands());
    }

    /**
     * The op atan: y = arctan x in [−π/2, π/2].
     *
     * <p>Gradient: g / (1 + x²).
     *
     * @return the node
     */
    public Node atan() {
        return append("atan", new Attrs(), operands());
    }

    /**
     * The op atan2: y = the angle in [−π, π] of the point with abscissa b and ordinate a, with broadcasting.
     *
     * <p>At a = b = 0 the value is NumPy's (0 or ±π), and the derivatives, which do not exist there, are NaN. At
     * infinity the derivatives are 0.
     *
     * <p>Gradient: da = g · b / (a² + b²), db = −g · a / (a² + b²).
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node atan2(Node b) {
        return append("atan2", new Attrs(), operands(b));
    }

    /**
     * The op atanh: y = artanh x: ±∞ at ±1, NaN beyond.
     *
     * <p>Gradient: g / (1 − x²).
     *
     * @return the node
     */
    public Node atanh() {
        return append("atanh", new Attrs(), operands());
    }

    /** Options of attention. */
    public static final class AttentionOptions {
        private final Attrs attrs = new Attrs();
        private Node mask;

        private AttentionOptions() {}

        /**
         * Sets an operand.
         *
         * @param mask a node of the same graph
         * @return these options
         */
        public AttentionOptions mask(Node mask) {
            this.mask = mask;
            return this;
        }

        /**
         * Factor of q kᵀ; default: 1/√d.
         *
         * @param scale the value
         * @return these options
         */
        public AttentionOptions scale(double scale) {
            attrs.with("scale", scale);
            return this;
        }

        /**
         * Whether to hide key j from query i if j &gt; i; default false.
         *
         * @param causal the value
         * @return these options
         */
        public AttentionOptions causal(boolean causal) {
            attrs.with("causal", causal);
            return this;
        }

        /**
         * Whether each head of k and v serves several heads of q; axis -3; since opset 2; default false.
         *
         * @param grouped the value
         * @return these options
         */
        public AttentionOptions grouped(boolean grouped) {
            attrs.with("grouped", grouped);
            return this;
        }
    }

    /**
     * The op attention: y = softmax(q kᵀ · scale + mask) v: for each query, the mean of the values, weighted by how
     * well its key matches.
     *
     * <p>q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast.
     * The mask broadcasts to [..., queries, keys]; it is bool (true = keep) or float (added). <code>causal</code> also
     * hides key j from query i if j &gt; i. A query with no visible keys gives NaN. With <code>grouped</code>, the
     * number of heads of q (axis -3) is a multiple of that of k and v, and adjacent heads of q share a head of k and v:
     * PyTorch's enable_gqa, and what JAX's dot_product_attention does if k and v have fewer heads. Scores of at least
     * 16 MiB that are larger than q, k and v together are not stored, except for tangents and second derivatives.
     *
     * <p>A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie et al., "GQA" (2023).
     *
     * <p>Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv =
     * pᵀ g.
     *
     * <p>This node is the operand q.
     *
     * @param k an operand
     * @param v an operand
     * @return the node
     */
    public Node attention(Node k, Node v) {
        return append("attention", new Attrs(), operands(k, v));
    }

    /**
     * The op attention: y = softmax(q kᵀ · scale + mask) v: for each query, the mean of the values, weighted by how
     * well its key matches.
     *
     * <p>q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast.
     * The mask broadcasts to [..., queries, keys]; it is bool (true = keep) or float (added). <code>causal</code> also
     * hides key j from query i if j &gt; i. A query with no visible keys gives NaN. With <code>grouped</code>, the
     * number of heads of q (axis -3) is a multiple of that of k and v, and adjacent heads of q share a head of k and v:
     * PyTorch's enable_gqa, and what JAX's dot_product_attention does if k and v have fewer heads. Scores of at least
     * 16 MiB that are larger than q, k and v together are not stored, except for tangents and second derivatives.
     *
     * <p>A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie et al., "GQA" (2023).
     *
     * <p>Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv =
     * pᵀ g.
     *
     * <p>This node is the operand q.
     *
     * @param k an operand
     * @param v an operand
     * @param mask an operand; null if it is absent
     * @return the node
     */
    public Node attention(Node k, Node v, Node mask) {
        return append("attention", new Attrs(), operands(k, v, mask));
    }

    /**
     * The op attention: y = softmax(q kᵀ · scale + mask) v: for each query, the mean of the values, weighted by how
     * well its key matches.
     *
     * <p>q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast.
     * The mask broadcasts to [..., queries, keys]; it is bool (true = keep) or float (added). <code>causal</code> also
     * hides key j from query i if j &gt; i. A query with no visible keys gives NaN. With <code>grouped</code>, the
     * number of heads of q (axis -3) is a multiple of that of k and v, and adjacent heads of q share a head of k and v:
     * PyTorch's enable_gqa, and what JAX's dot_product_attention does if k and v have fewer heads. Scores of at least
     * 16 MiB that are larger than q, k and v together are not stored, except for tangents and second derivatives.
     *
     * <p>A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie et al., "GQA" (2023).
     *
     * <p>Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv =
     * pᵀ g.
     *
     * <p>This node is the operand q.
     *
     * @param k an operand
     * @param v an operand
     * @param options sets options
     * @return the node
     */
    public Node attention(Node k, Node v, Consumer<AttentionOptions> options) {
        AttentionOptions given = given(new AttentionOptions(), options);
        return append("attention", given.attrs, operands(k, v, given.mask));
    }

    /** Options of avgPool1d. */
    public static final class AvgPool1dOptions {
        private final Attrs attrs = new Attrs();

        private AvgPool1dOptions() {}

        /**
         * Distance between windows along each spatial axis; default: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public AvgPool1dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Padding on both sides of each axis; at most half the kernel size; default [0].
         *
         * @param padding the value
         * @return these options
         */
        public AvgPool1dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Whether to count a last window that extends past the end padding but starts before it; default false.
         *
         * @param ceiling the value
         * @return these options
         */
        public AvgPool1dOptions ceiling(boolean ceiling) {
            attrs.with("ceiling", ceiling);
            return this;
        }
    }

    /**
     * The op avg_pool1d: y[…, i] = the mean of the window at i. x [..., w]; padding counts as zeros. Integers give
     * float64.
     *
     * <p>Extents are as in max_pool1d. With <code>ceiling</code>, the part of a window beyond the padding is not
     * counted. PyTorch: <code>avg_pool1d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>. Flax:
     * <code>avg_pool</code>, which has no ceiling mode.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (number of taps in the window), added to each of its elements.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node avgPool1d(long... kernelSize) {
        return append("avg_pool1d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op avg_pool1d: y[…, i] = the mean of the window at i. x [..., w]; padding counts as zeros. Integers give
     * float64.
     *
     * <p>Extents are as in max_pool1d. With <code>ceiling</code>, the part of a window beyond the padding is not
     * counted. PyTorch: <code>avg_pool1d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>. Flax:
     * <code>avg_pool</code>, which has no ceiling mode.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (number of taps in the window), added to each of its elements.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options sets options
     * @return the node
     */
    public Node avgPool1d(long[] kernelSize, Consumer<AvgPool1dOptions> options) {
        AvgPool1dOptions given = given(new AvgPool1dOptions(), options);
        return append("avg_pool1d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** Options of avgPool2d. */
    public static final class AvgPool2dOptions {
        private final Attrs attrs = new Attrs();

        private AvgPool2dOptions() {}

        /**
         * Distance between windows along each spatial axis; default: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public AvgPool2dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Padding on both sides of each spatial axis; at most half the kernel size; default [0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public AvgPool2dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }
    }

    /**
     * The op avg_pool2d: y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as
     * zeros.
     *
     * <p>x [..., h, w]. Integers give float64. Same as PyTorch's avg_pool2d.
     *
     * <p>Gradient: conv_transpose2d of g / kernel size with ones.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node avgPool2d(long... kernelSize) {
        return append("avg_pool2d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op avg_pool2d: y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as
     * zeros.
     *
     * <p>x [..., h, w]. Integers give float64. Same as PyTorch's avg_pool2d.
     *
     * <p>Gradient: conv_transpose2d of g / kernel size with ones.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options sets options
     * @return the node
     */
    public Node avgPool2d(long[] kernelSize, Consumer<AvgPool2dOptions> options) {
        AvgPool2dOptions given = given(new AvgPool2dOptions(), options);
        return append("avg_pool2d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** Options of avgPool3d. */
    public static final class AvgPool3dOptions {
        private final Attrs attrs = new Attrs();

        private AvgPool3dOptions() {}

        /**
         * Distance between windows along each spatial axis; default: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public AvgPool3dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Padding on both sides of each axis; at most half the kernel size; default [0, 0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public AvgPool3dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Whether to count a last window that extends past the end padding but starts before it; default false.
         *
         * @param ceiling the value
         * @return these options
         */
        public AvgPool3dOptions ceiling(boolean ceiling) {
            attrs.with("ceiling", ceiling);
            return this;
        }
    }

    /**
     * The op avg_pool3d: y[…, i, j, k] = the mean of the window at (i, j, k). x [..., d, h, w]; padding counts as
     * zeros.
     *
     * <p>Integers give float64. Extents are as in max_pool1d. With <code>ceiling</code>, the part of a window beyond
     * the padding is not counted. PyTorch: <code>avg_pool3d</code>, whose <code>ceil_mode</code> is
     * <code>ceiling</code>. Flax: <code>avg_pool</code>, which has no ceiling mode.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (number of taps in the window), added to each of its elements.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node avgPool3d(long... kernelSize) {
        return append("avg_pool3d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op avg_pool3d: y[…, i, j, k] = the mean of the window at (i, j, k). x [..., d, h, w]; padding counts as
     * zeros.
     *
     * <p>Integers give float64. Extents are as in max_pool1d. With <code>ceiling</code>, the part of a window beyond
     * the padding is not counted. PyTorch: <code>avg_pool3d</code>, whose <code>ceil_mode</code> is
     * <code>ceiling</code>. Flax: <code>avg_pool</code>, which has no ceiling mode.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (number of taps in the window), added to each of its elements.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options sets options
     * @return the node
     */
    public Node avgPool3d(long[] kernelSize, Consumer<AvgPool3dOptions> options) {
        AvgPool3dOptions given = given(new AvgPool3dOptions(), options);
        return append("avg_pool3d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** Options of batchNorm. */
    public static final class BatchNormOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private BatchNormOptions() {}

        /**
         * Sets an operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public BatchNormOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public BatchNormOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Axis of the features; default 1.
         *
         * @param axis the value
         * @return these options
         */
        public BatchNormOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Positive number added to the variance or mean square; default 1e-05.
         *
         * @param eps the value
         * @return these options
         */
        public BatchNormOptions eps(double eps) {
            attrs.with("eps", eps);
            return this;
        }
    }

    /**
     * The op batch_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each feature
     * over all other axes.
     *
     * <p><code>axis</code> is the axis of the features; weight and bias have its extent. The statistics are those of
     * the operand, as in training, with n in the denominator. CJC normalises the whole tensor: for that, reshape it to
     * [n, 1]. S. Ioffe, C. Szegedy, "Batch normalization" (2015).
     *
     * <p>Gradient: as in layer_norm, over all axes but that of the features.
     *
     * @return the node
     */
    public Node batchNorm() {
        return append("batch_norm", new Attrs(), operands());
    }

    /**
     * The op batch_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each feature
     * over all other axes.
     *
     * <p><code>axis</code> is the axis of the features; weight and bias have its extent. The statistics are those of
     * the operand, as in training, with n in the denominator. CJC normalises the whole tensor: for that, reshape it to
     * [n, 1]. S. Ioffe, C. Szegedy, "Batch normalization" (2015).
     *
     * <p>Gradient: as in layer_norm, over all axes but that of the features.
     *
     * <p>This node is the operand x.
     *
     * @param weight an operand; null if it is absent
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node batchNorm(Node weight, Node bias) {
        return append("batch_norm", new Attrs(), operands(weight, bias));
    }

    /**
     * The op batch_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each feature
     * over all other axes.
     *
     * <p><code>axis</code> is the axis of the features; weight and bias have its extent. The statistics are those of
     * the operand, as in training, with n in the denominator. CJC normalises the whole tensor: for that, reshape it to
     * [n, 1]. S. Ioffe, C. Szegedy, "Batch normalization" (2015).
     *
     * <p>Gradient: as in layer_norm, over all axes but that of the features.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node batchNorm(Consumer<BatchNormOptions> options) {
        BatchNormOptions given = given(new BatchNormOptions(), options);
        return append("batch_norm", given.attrs, operands(given.weight, given.bias));
    }

    /** Options of batchNormGiven. */
    public static final class BatchNormGivenOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private BatchNormGivenOptions() {}

        /**
         * Sets an operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public BatchNormGivenOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public BatchNormGivenOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Axis of the features; default 1.
         *
         * @param axis the value
         * @return these options
         */
        public BatchNormGivenOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Positive number added to the variance or mean square; default 1e-05.
         *
         * @param eps the value
         * @return these options
         */
        public BatchNormGivenOptions eps(double eps) {
            attrs.with("eps", eps);
            return this;
        }
    }

    /**
     * The op batch_norm_given: y = (x − mean) / √(variance + eps) · weight + bias, with given statistics, as in
     * inference.
     *
     * <p><code>axis</code> is the axis of the features; all other operands have its extent. PyTorch:
     * <code>batch_norm</code> with training false. Flax: <code>BatchNorm</code> with use_running_average, with features
     * last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: with r = 1 / √(variance + eps): dx = g · weight · r; for the other operands, that of the formula.
     *
     * <p>This node is the operand x.
     *
     * @param mean an operand
     * @param variance an operand
     * @return the node
     */
    public Node batchNormGiven(Node mean, Node variance) {
        return append("batch_norm_given", new Attrs(), operands(mean, variance));
    }

    /**
     * The op batch_norm_given: y = (x − mean) / √(variance + eps) · weight + bias, with given statistics, as in
     * inference.
     *
     * <p><code>axis</code> is the axis of the features; all other operands have its extent. PyTorch:
     * <code>batch_norm</code> with training false. Flax: <code>BatchNorm</code> with use_running_average, with features
     * last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: with r = 1 / √(variance + eps): dx = g · weight · r; for the other operands, that of the formula.
     *
     * <p>This node is the operand x.
     *
     * @param mean an operand
     * @param variance an operand
     * @param weight an operand; null if it is absent
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node batchNormGiven(Node mean, Node variance, Node weight, Node bias) {
        return append("batch_norm_given", new Attrs(), operands(mean, variance, weight, bias));
    }

    /**
     * The op batch_norm_given: y = (x − mean) / √(variance + eps) · weight + bias, with given statistics, as in
     * inference.
     *
     * <p><code>axis</code> is the axis of the features; all other operands have its extent. PyTorch:
     * <code>batch_norm</code> with training false. Flax: <code>BatchNorm</code> with use_running_average, with features
     * last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: with r = 1 / √(variance + eps): dx = g · weight · r; for the other operands, that of the formula.
     *
     * <p>This node is the operand x.
     *
     * @param mean an operand
     * @param variance an operand
     * @param options sets options
     * @return the node
     */
    public Node batchNormGiven(Node mean, Node variance, Consumer<BatchNormGivenOptions> options) {
        BatchNormGivenOptions given = given(new BatchNormGivenOptions(), options);
        return append("batch_norm_given", given.attrs, operands(mean, variance, given.weight, given.bias));
    }

    /** Options of batchNormRunning. */
    public static final class BatchNormRunningOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private BatchNormRunningOptions() {}

        /**
         * Sets an operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public BatchNormRunningOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public BatchNormRunningOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Axis of the features; default 1.
         *
         * @param axis the value
         * @return these options
         */
        public BatchNormRunningOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Positive number added to the variance or mean square; default 1e-05.
         *
         * @param eps the value
         * @return these options
         */
        public BatchNormRunningOptions eps(double eps) {
            attrs.with("eps", eps);
            return this;
        }

        /**
         * Weight of the batch's statistics in the running ones; default 0.1.
         *
         * @param momentum the value
         * @return these options
         */
        public BatchNormRunningOptions momentum(double momentum) {
            attrs.with("momentum", momentum);
            return this;
        }
    }

    /**
     * The op batch_norm_running: y of <code>batch_norm</code>, and the updated running mean and variance: (1 −
     * momentum) · old + momentum · this batch's.
     *
     * <p><code>axis</code> is the axis of the features; all other operands have its extent. The variance of the batch
     * has n − 1 in the denominator in the running variance, and n in y. PyTorch: <code>batch_norm</code> with training
     * true, which updates the running statistics in place and gives them no gradient. Flax: <code>BatchNorm</code>,
     * whose momentum is 1 minus this one, and whose running variance has n in the denominator.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: as in batch_norm; for the running statistics, that of their formula.
     *
     * <p>This node is the operand x.
     *
     * @param mean an operand
     * @param variance an operand
     * @return the node
     */
    public Node batchNormRunning(Node mean, Node variance) {
        return append("batch_norm_running", new Attrs(), operands(mean, variance));
    }

    /**
     * The op batch_norm_running: y of <code>batch_norm</code>, and the updated running mean and variance: (1 −
     * momentum) · old + momentum · this batch's.
     *
     * <p><code>axis</code> is the axis of the features; all other operands have its extent. The variance of the batch
     * has n − 1 in the denominator in the running variance, and n in y. PyTorch: <code>batch_norm</code> with training
     * true, which updates the running statistics in place and gives them no gradient. Flax: <code>BatchNorm</code>,
     * whose momentum is 1 minus this one, and whose running variance has n in the denominator.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: as in batch_norm; for the running statistics, that of their formula.
     *
     * <p>This node is the operand x.
     *
     * @param mean an operand
     * @param variance an operand
     * @param weight an operand; null if it is absent
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node batchNormRunning(Node mean, Node variance, Node weight, Node bias) {
        return append("batch_norm_running", new Attrs(), operands(mean, variance, weight, bias));
    }

    /**
     * The op batch_norm_running: y of <code>batch_norm</code>, and the updated running mean and variance: (1 −
     * momentum) · old + momentum · this batch's.
     *
     * <p><code>axis</code> is the axis of the features; all other operands have its extent. The variance of the batch
     * has n − 1 in the denominator in the running variance, and n in y. PyTorch: <code>batch_norm</code> with training
     * true, which updates the running statistics in place and gives them no gradient. Flax: <code>BatchNorm</code>,
     * whose momentum is 1 minus this one, and whose running variance has n in the denominator.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: as in batch_norm; for the running statistics, that of their formula.
     *
     * <p>This node is the operand x.
     *
     * @param mean an operand
     * @param variance an operand
     * @param options sets options
     * @return the node
     */
    public Node batchNormRunning(Node mean, Node variance, Consumer<BatchNormRunningOptions> options) {
        BatchNormRunningOptions given = given(new BatchNormRunningOptions(), options);
        return append("batch_norm_running", given.attrs, operands(mean, variance, given.weight, given.bias));
    }

    /** Options of bceWithLogits. */
    public static final class BceWithLogitsOptions {
        private final Attrs attrs = new Attrs();

        private BceWithLogitsOptions() {}

        /**
         * How to combine the losses; none: return each one; one of mean, sum, none; default mean.
         *
         * @param reduction the value
         * @return these options
         */
        public BceWithLogitsOptions reduction(String reduction) {
            attrs.with("reduction", reduction);
            return this;
        }
    }

    /**
     * The op bce_with_logits: loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise for equal
     * shapes; then the mean.
     *
     * <p>x contains logits, y probabilities. Accurate in both tails, because the logarithm of σ is computed in one
     * step.
     *
     * <p>Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
     *
     * <p>This node is the operand x.
     *
     * @param y an operand
     * @return the node
     */
    public Node bceWithLogits(Node y) {
        return append("bce_with_logits", new Attrs(), operands(y));
    }

    /**
     * The op bce_with_logits: loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise for equal
     * shapes; then the mean.
     *
     * <p>x contains logits, y probabilities. Accurate in both tails, because the logarithm of σ is computed in one
     * step.
     *
     * <p>Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
     *
     * <p>This node is the operand x.
     *
     * @param y an operand
     * @param options sets options
     * @return the node
     */
    public Node bceWithLogits(Node y, Consumer<BceWithLogitsOptions> options) {
        BceWithLogitsOptions given = given(new BceWithLogitsOptions(), options);
        return append("bce_with_logits", given.attrs, operands(y));
    }

    /**
     * The op betainc: y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), with broadcasting, for 0 ≤ x ≤ 1 and a, b &gt;
     * 0.
     *
     * <p>On NumPy, this is SciPy's function. Accurate to 256 ulp. Derivatives with respect to all operands exist to any
     * order. They are accurate to 1e-12 of their value with respect to x, and to 1e-11 with respect to a and b, for
     * which JAX has none. SciPy and JAX: <code>betainc</code>. PyTorch has no equivalent.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b, integrals; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @param x an operand
     * @return the node
     */
    public Node betainc(Node b, Node x) {
        return append("betainc", new Attrs(), operands(b, x));
    }

    /**
     * The op betaln: y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, with broadcasting. Accurate to 10 ulp of y, or of
     * 1 if |y| &lt; 1.
     *
     * <p>One ulp is that of float64, on NumPy. If an operand is large, a sum of <code>lgamma</code> would have few
     * correct digits, and SciPy's loses up to 9 of 16. For operands that are not positive, y equals SciPy's; at
     * infinity it is −∞.
     *
     * <p>The derivative with respect to a is as accurate, or, if b &lt; a &lt; 100, accurate to 1e-15 · a / b of its
     * value. The same holds for b.
     *
     * <p>Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node betaln(Node b) {
        return append("betaln", new Attrs(), operands(b));
    }

    /**
     * The op broadcast_to: y = x repeated along new leading axes and along axes of extent 1, to <code>shape</code>, by
     * NumPy's rules.
     *
     * <p>Gradient: g, summed over the repeated axes.
     *
     * <p>This node is the operand x.
     *
     * @param shape shape of the result; default []
     * @return the node
     */
    public Node broadcastTo(long... shape) {
        return append("broadcast_to", new Attrs().with("shape", shape), operands());
    }

    /**
     * The op cast: y = x converted to another dtype, as in NumPy's astype: fractions are truncated towards zero,
     * nonzero is true.
     *
     * <p>Float to float is differentiable; no gradient passes through integers or bool. A real x can become complex. To
     * convert a complex x to real, use <code>real</code>.
     *
     * <p>Gradient: g, cast back.
     *
     * <p>This node is the operand x.
     *
     * @param dtype dtype of the result
     * @return the node
     */
    public Node cast(DType dtype) {
        return append("cast", new Attrs().with("dtype", dtype), operands());
    }

    /** Options of cdist. */
    public static final class CdistOptions {
        private final Attrs attrs = new Attrs();

        private CdistOptions() {}

        /**
         * Exponent; positive; default 2.0.
         *
         * @param p the value
         * @return these options
         */
        public CdistOptions p(double p) {
            attrs.with("p", p);
            return this;
        }
    }

    /**
     * The op cdist: y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance between row i of a and row j
     * of b.
     *
     * <p>a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient and
     * its own gradient are 0. Differences are taken before they are squared, so that no digits are lost. PyTorch:
     * <code>cdist</code> with compute_mode donot_use_mm_for_euclid_dist. JAX has no equivalent.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), 0 where y = 0; db likewise.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node cdist(Node b) {
        return append("cdist", new Attrs(), operands(b));
    }

    /**
     * The op cdist: y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance between row i of a and row j
     * of b.
     *
     * <p>a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient and
     * its own gradient are 0. Differences are taken before they are squared, so that no digits are lost. PyTorch:
     * <code>cdist</code> with compute_mode donot_use_mm_for_euclid_dist. JAX has no equivalent.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), 0 where y = 0; db likewise.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @param options sets options
     * @return the node
     */
    public Node cdist(Node b, Consumer<CdistOptions> options) {
        CdistOptions given = given(new CdistOptions(), options);
        return append("cdist", given.attrs, operands(b));
    }

    /**
     * The op ceil: y = ⌈x⌉: x rounded up to a whole number.
     *
     * @return the node
     */
    public Node ceil() {
        return append("ceil", new Attrs(), operands());
    }

    /**
     * The op cholesky: y lower triangular with a positive diagonal and y yᴴ = (x + xᴴ) / 2, for matrices on the last
     * two axes.
     *
     * <p>x is made symmetric (Hermitian) first, as in JAX, so that the gradient is symmetric and valid in every
     * direction. A matrix that is not positive definite gives NaN; the other matrices of the batch are unaffected.
     * Integers give float64; float16 is computed in a wider float and rounded once.
     *
     * <p>I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
     *
     * <p>Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle with half the diagonal.
     *
     * @return the node
     */
    public Node cholesky() {
        return append("cholesky", new Attrs(), operands());
    }

    /** Options of chunk. */
    public static final class ChunkOptions {
        private final Attrs attrs = new Attrs();

        private ChunkOptions() {}

        /**
         * Axis to split; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public ChunkOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }
    }

    /**
     * The op chunk: y0, y1, … = x split along <code>axis</code> into at most <code>chunks</code> parts of extent ⌈n /
     * chunks⌉; the last may be smaller.
     *
     * <p>As in PyTorch, there may be fewer parts than requested (6 entries in 4 chunks: 2, 2, 2). An empty axis gives
     * <code>chunks</code> empty parts.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: the parts' cotangents, joined; zeros for parts that are not read.
     *
     * <p>This node is the operand x.
     *
     * @param chunks maximum number of parts
     * @return the node
     */
    public Node chunk(long chunks) {
        return append("chunk", new Attrs().with("chunks", chunks), operands());
    }

    /**
     * The op chunk: y0, y1, … = x split along <code>axis</code> into at most <code>chunks</code> parts of extent ⌈n /
     * chunks⌉; the last may be smaller.
     *
     * <p>As in PyTorch, there may be fewer parts than requested (6 entries in 4 chunks: 2, 2, 2). An empty axis gives
     * <code>chunks</code> empty parts.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: the parts' cotangents, joined; zeros for parts that are not read.
     *
     * <p>This node is the operand x.
     *
     * @param chunks maximum number of parts
     * @param options sets options
     * @return the node
     */
    public Node chunk(long chunks, Consumer<ChunkOptions> options) {
        ChunkOptions given = given(new ChunkOptions(), options);
        return append("chunk", given.attrs.with("chunks", chunks), operands());
    }

    /** Options of clamp. */
    public static final class ClampOptions {
        private final Attrs attrs = new Attrs();

        private ClampOptions() {}

        /**
         * Lower bound; default: none.
         *
         * @param min the value
         * @return these options
         */
        public ClampOptions min(Number min) {
            attrs.with("min", min);
            return this;
        }

        /**
         * Upper bound; default: none.
         *
         * @param max the value
         * @return these options
         */
        public ClampOptions max(Number max) {
            attrs.with("max", max);
            return this;
        }
    }

    /**
     * The op clamp: y = x limited to [min, max]; either bound may be absent. If min &gt; max, y is max.
     *
     * <p>NaN stays NaN and gets the gradient. Integers keep their dtype if all bounds given are whole numbers within
     * its range; otherwise they give float64.
     *
     * <p>Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
     *
     * @return the node
     */
    public Node clamp() {
        return append("clamp", new Attrs(), operands());
    }

    /**
     * The op clamp: y = x limited to [min, max]; either bound may be absent. If min &gt; max, y is max.
     *
     * <p>NaN stays NaN and gets the gradient. Integers keep their dtype if all bounds given are whole numbers within
     * its range; otherwise they give float64.
     *
     * <p>Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node clamp(Consumer<ClampOptions> options) {
        ClampOptions given = given(new ClampOptions(), options);
        return append("clamp", given.attrs, operands());
    }

    /** Options of compress. */
    public static final class CompressOptions {
        private final Attrs attrs = new Attrs();

        private CompressOptions() {}

        /**
         * Axis that the mask applies to; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public CompressOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Value of the remaining entries; default 0.0.
         *
         * @param fill the value
         * @return these options
         */
        public CompressOptions fill(Number fill) {
            attrs.with("fill", fill);
            return this;
        }

        /**
         * Infinity or NaN to use instead of <code>fill</code>; float dtypes only; one of inf, -inf, nan.
         *
         * @param fillAs the value
         * @return these options
         */
        public CompressOptions fillAs(String fillAs) {
            attrs.with("fill_as", fillAs);
            return this;
        }
    }

    /**
     * The op compress: The first k entries of x along <code>axis</code> where <code>mask</code> [extent] is true; and
     * their total count: int64 [].
     *
     * <p>You set k, so that shapes do not depend on the mask. If there are more than k entries, the rest are dropped;
     * if there are fewer, the remaining entries are <code>fill</code>. The count, which is not limited to k, tells you
     * which. NumPy: <code>compress</code>. JAX: <code>compress</code>, which also takes a size and a fill_value.
     * PyTorch: x[mask], which has as many entries as the mask selects.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: g to the entries that were read; none for mask.
     *
     * <p>This node is the operand x.
     *
     * @param mask an operand
     * @param k number of entries in the result
     * @return the node
     */
    public Node compress(Node mask, long k) {
        return append("compress", new Attrs().with("k", k), operands(mask));
    }

    /**
     * The op compress: The first k entries of x along <code>axis</code> where <code>mask</code> [extent] is true; and
     * their total count: int64 [].
     *
     * <p>You set k, so that shapes do not depend on the mask. If there are more than k entries, the rest are dropped;
     * if there are fewer, the remaining entries are <code>fill</code>. The count, which is not limited to k, tells you
     * which. NumPy: <code>compress</code>. JAX: <code>compress</code>, which also takes a size and a fill_value.
     * PyTorch: x[mask], which has as many entries as the mask selects.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: g to the entries that were read; none for mask.
     *
     * <p>This node is the operand x.
     *
     * @param mask an operand
     * @param k number of entries in the result
     * @param options sets options
     * @return the node
     */
    public Node compress(Node mask, long k, Consumer<CompressOptions> options) {
        CompressOptions given = given(new CompressOptions(), options);
        return append("compress", given.attrs.with("k", k), operands(mask));
    }

    /**
     * The op cond_number: y = s₀ / sₖ₋₁, the condition number in the 2-norm: the largest singular value over the
     * smallest.
     *
     * <p>x [batch…, m, n], y [batch…]. A rank-deficient matrix gives infinity if rounding leaves an exact 0. A zero
     * matrix, or one with an infinity or NaN, gives NaN. Integers give float64; float16 is computed in float32 and
     * rounded once. PyTorch, JAX and NumPy: <code>linalg.cond</code> without p.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁), with the singular vectors of s₀ and sₖ₋₁.
     *
     * @return the node
     */
    public Node condNumber() {
        return append("cond_number", new Attrs(), operands());
    }

    /**
     * The op conj: y = conj x: the imaginary part is negated; a real x is returned unchanged. PyTorch, JAX and NumPy:
     * <code>conj</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: conj g.
     *
     * @return the node
     */
    public Node conj() {
        return append("conj", new Attrs(), operands());
    }

    /** Options of conv1d. */
    public static final class Conv1dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private Conv1dOptions() {}

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public Conv1dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance between windows along each spatial axis; default [1].
         *
         * @param stride the value
         * @return these options
         */
        public Conv1dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros added on both sides of each spatial axis; default [0].
         *
         * @param padding the value
         * @return these options
         */
        public Conv1dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance between the kernel's taps along each spatial axis; default [1].
         *
         * @param dilation the value
         * @return these options
         */
        public Conv1dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Number of equal groups of channels, each with its own kernels; default 1.
         *
         * @param groups the value
         * @return these options
         */
        public Conv1dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }
    }

    /**
     * The op conv1d: y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.
     *
     * <p>s, d and p are stride, dilation and padding. x [n, channels, w], zero outside; kernel [features, channels /
     * groups, kw]; y [n, features, w'] with w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Each feature reads only the
     * channels of its own group. Same as PyTorch's conv1d.
     *
     * <p>Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @return the node
     */
    public Node conv1d(Node kernel) {
        return append("conv1d", new Attrs(), operands(kernel));
    }

    /**
     * The op conv1d: y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.
     *
     * <p>s, d and p are stride, dilation and padding. x [n, channels, w], zero outside; kernel [features, channels /
     * groups, kw]; y [n, features, w'] with w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Each feature reads only the
     * channels of its own group. Same as PyTorch's conv1d.
     *
     * <p>Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node conv1d(Node kernel, Node bias) {
        return append("conv1d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv1d: y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.
     *
     * <p>s, d and p are stride, dilation and padding. x [n, channels, w], zero outside; kernel [features, channels /
     * groups, kw]; y [n, features, w'] with w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Each feature reads only the
     * channels of its own group. Same as PyTorch's conv1d.
     *
     * <p>Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param options sets options
     * @return the node
     */
    public Node conv1d(Node kernel, Consumer<Conv1dOptions> options) {
        Conv1dOptions given = given(new Conv1dOptions(), options);
        return append("conv1d", given.attrs, operands(kernel, given.bias));
    }

    /** Options of conv2d. */
    public static final class Conv2dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private Conv2dOptions() {}

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public Conv2dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance between windows along each spatial axis; default [1, 1].
         *
         * @param stride the value
         * @return these options
         */
        public Conv2dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros added on both sides of each spatial axis; default [0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public Conv2dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance between the kernel's taps along each spatial axis; default [1, 1].
         *
         * @param dilation the value
         * @return these options
         */
        public Conv2dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Number of equal groups of channels, each with its own kernels; default 1.
         *
         * @param groups the value
         * @return these options
         */
        public Conv2dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }
    }

    /**
     * The op conv2d: y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a
     * cross-correlation.
     *
     * <p>s, d and p are stride, dilation and padding. x [n, channels, h, w], zero outside; kernel [features, channels /
     * groups, kh, kw]; y [n, features, h', w'] with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Each feature reads only
     * the channels of its own group. Same as PyTorch's conv2d.
     *
     * <p>Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @return the node
     */
    public Node conv2d(Node kernel) {
        return append("conv2d", new Attrs(), operands(kernel));
    }

    /**
     * The op conv2d: y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a
     * cross-correlation.
     *
     * <p>s, d and p are stride, dilation and padding. x [n, channels, h, w], zero outside; kernel [features, channels /
     * groups, kh, kw]; y [n, features, h', w'] with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Each feature reads only
     * the channels of its own group. Same as PyTorch's conv2d.
     *
     * <p>Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node conv2d(Node kernel, Node bias) {
        return append("conv2d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv2d: y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a
     * cross-correlation.
     *
     * <p>s, d and p are stride, dilation and padding. x [n, channels, h, w], zero outside; kernel [features, channels /
     * groups, kh, kw]; y [n, features, h', w'] with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Each feature reads only
     * the channels of its own group. Same as PyTorch's conv2d.
     *
     * <p>Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param options sets options
     * @return the node
     */
    public Node conv2d(Node kernel, Consumer<Conv2dOptions> options) {
        Conv2dOptions given = given(new Conv2dOptions(), options);
        return append("conv2d", given.attrs, operands(kernel, given.bias));
    }

    /** Options of conv3d. */
    public static final class Conv3dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private Conv3dOptions() {}

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public Conv3dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance between windows along each spatial axis; default [1, 1, 1].
         *
         * @param stride the value
         * @return these options
         */
        public Conv3dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros added on both sides of each spatial axis; default [0, 0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public Conv3dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance between the kernel's taps along each spatial axis; default [1, 1, 1].
         *
         * @param dilation the value
         * @return these options
         */
        public Conv3dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Number of equal groups of channels, each with its own kernels; default 1.
         *
         * @param groups the value
         * @return these options
         */
        public Conv3dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }
    }

    /**
     * The op conv3d: y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e]
     * + bias[o].
     *
     * <p>A cross-correlation. x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw];
     * y [n, features, d', h', w'] with extents as in conv2d. Same as PyTorch's conv3d.
     *
     * <p>Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @return the node
     */
    public Node conv3d(Node kernel) {
        return append("conv3d", new Attrs(), operands(kernel));
    }

    /**
     * The op conv3d: y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e]
     * + bias[o].
     *
     * <p>A cross-correlation. x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw];
     * y [n, features, d', h', w'] with extents as in conv2d. Same as PyTorch's conv3d.
     *
     * <p>Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node conv3d(Node kernel, Node bias) {
        return append("conv3d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv3d: y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e]
     * + bias[o].
     *
     * <p>A cross-correlation. x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw];
     * y [n, features, d', h', w'] with extents as in conv2d. Same as PyTorch's conv3d.
     *
     * <p>Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param options sets options
     * @return the node
     */
    public Node conv3d(Node kernel, Consumer<Conv3dOptions> options) {
        Conv3dOptions given = given(new Conv3dOptions(), options);
        return append("conv3d", given.attrs, operands(kernel, given.bias));
    }

    /** Options of convTranspose1d. */
    public static final class ConvTranspose1dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private ConvTranspose1dOptions() {}

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public ConvTranspose1dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance between windows along each spatial axis; default [1].
         *
         * @param stride the value
         * @return these options
         */
        public ConvTranspose1dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros added on both sides of each spatial axis; default [0].
         *
         * @param padding the value
         * @return these options
         */
        public ConvTranspose1dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance between the kernel's taps along each spatial axis; default [1].
         *
         * @param dilation the value
         * @return these options
         */
        public ConvTranspose1dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Number of equal groups of channels, each with its own kernels; default 1.
         *
         * @param groups the value
         * @return these options
         */
        public ConvTranspose1dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }

        /**
         * Extent added at the end of each spatial axis of the result; default [0].
         *
         * @param outputPadding the value
         * @return these options
         */
        public ConvTranspose1dOptions outputPadding(long... outputPadding) {
            attrs.with("output_padding", outputPadding);
            return this;
        }
    }

    /**
     * The op conv_transpose1d: y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of
     * conv1d.
     *
     * <p>x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'] with w' = (w − 1)·s + d·(kw
     * − 1) + 1 + output_padding − 2p. PyTorch: <code>conv_transpose1d</code>. JAX: <code>lax.conv_transpose</code> with
     * transpose_kernel, which has the kernel's axes in another order and takes the padding of the underlying dilated
     * convolution.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @return the node
     */
    public Node convTranspose1d(Node kernel) {
        return append("conv_transpose1d", new Attrs(), operands(kernel));
    }

    /**
     * The op conv_transpose1d: y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of
     * conv1d.
     *
     * <p>x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'] with w' = (w − 1)·s + d·(kw
     * − 1) + 1 + output_padding − 2p. PyTorch: <code>conv_transpose1d</code>. JAX: <code>lax.conv_transpose</code> with
     * transpose_kernel, which has the kernel's axes in another order and takes the padding of the underlying dilated
     * convolution.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node convTranspose1d(Node kernel, Node bias) {
        return append("conv_transpose1d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv_transpose1d: y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of
     * conv1d.
     *
     * <p>x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'] with w' = (w − 1)·s + d·(kw
     * − 1) + 1 + output_padding − 2p. PyTorch: <code>conv_transpose1d</code>. JAX: <code>lax.conv_transpose</code> with
     * transpose_kernel, which has the kernel's axes in another order and takes the padding of the underlying dilated
     * convolution.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param options sets options
     * @return the node
     */
    public Node convTranspose1d(Node kernel, Consumer<ConvTranspose1dOptions> options) {
        ConvTranspose1dOptions given = given(new ConvTranspose1dOptions(), options);
        return append("conv_transpose1d", given.attrs, operands(kernel, given.bias));
    }

    /** Options of convTranspose2d. */
    public static final class ConvTranspose2dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private ConvTranspose2dOptions() {}

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public ConvTranspose2dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance between windows along each spatial axis; default [1, 1].
         *
         * @param stride the value
         * @return these options
         */
        public ConvTranspose2dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros added on both sides of each spatial axis; default [0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public ConvTranspose2dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance between the kernel's taps along each spatial axis; default [1, 1].
         *
         * @param dilation the value
         * @return these options
         */
        public ConvTranspose2dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Number of equal groups of channels, each with its own kernels; default 1.
         *
         * @param groups the value
         * @return these options
         */
        public ConvTranspose2dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }

        /**
         * Extent added at the end of each spatial axis of the result; default [0, 0].
         *
         * @param outputPadding the value
         * @return these options
         */
        public ConvTranspose2dOptions outputPadding(long... outputPadding) {
            attrs.with("output_padding", outputPadding);
            return this;
        }
    }

    /**
     * The op conv_transpose2d: y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]:
     * the adjoint of conv2d.
     *
     * <p>x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with h' = (h −
     * 1)·s − 2p + d·(kh − 1) + 1 + output_padding. Same as PyTorch's conv_transpose2d.
     *
     * <p>Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @return the node
     */
    public Node convTranspose2d(Node kernel) {
        return append("conv_transpose2d", new Attrs(), operands(kernel));
    }

    /**
     * The op conv_transpose2d: y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]:
     * the adjoint of conv2d.
     *
     * <p>x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with h' = (h −
     * 1)·s − 2p + d·(kh − 1) + 1 + output_padding. Same as PyTorch's conv_transpose2d.
     *
     * <p>Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node convTranspose2d(Node kernel, Node bias) {
        return append("conv_transpose2d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv_transpose2d: y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]:
     * the adjoint of conv2d.
     *
     * <p>x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with h' = (h −
     * 1)·s − 2p + d·(kh − 1) + 1 + output_padding. Same as PyTorch's conv_transpose2d.
     *
     * <p>Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param options sets options
     * @return the node
     */
    public Node convTranspose2d(Node kernel, Consumer<ConvTranspose2dOptions> options) {
        ConvTranspose2dOptions given = given(new ConvTranspose2dOptions(), options);
        return append("conv_transpose2d", given.attrs, operands(kernel, given.bias));
    }

    /** Options of convTranspose3d. */
    public static final class ConvTranspose3dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private ConvTranspose3dOptions() {}

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public ConvTranspose3dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance between windows along each spatial axis; default [1, 1, 1].
         *
         * @param stride the value
         * @return these options
         */
        public ConvTranspose3dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros added on both sides of each spatial axis; default [0, 0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public ConvTranspose3dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance between the kernel's taps along each spatial axis; default [1, 1, 1].
         *
         * @param dilation the value
         * @return these options
         */
        public ConvTranspose3dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Number of equal groups of channels, each with its own kernels; default 1.
         *
         * @param groups the value
         * @return these options
         */
        public ConvTranspose3dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }

        /**
         * Extent added at the end of each spatial axis of the result; default [0, 0, 0].
         *
         * @param outputPadding the value
         * @return these options
         */
        public ConvTranspose3dOptions outputPadding(long... outputPadding) {
            attrs.with("output_padding", outputPadding);
            return this;
        }
    }

    /**
     * The op conv_transpose3d: y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the
     * adjoint of conv3d.
     *
     * <p>x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w'] with
     * extents as in conv_transpose2d. Same as PyTorch's conv_transpose3d.
     *
     * <p>Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @return the node
     */
    public Node convTranspose3d(Node kernel) {
        return append("conv_transpose3d", new Attrs(), operands(kernel));
    }

    /**
     * The op conv_transpose3d: y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the
     * adjoint of conv3d.
     *
     * <p>x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w'] with
     * extents as in conv_transpose2d. Same as PyTorch's conv_transpose3d.
     *
     * <p>Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node convTranspose3d(Node kernel, Node bias) {
        return append("conv_transpose3d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv_transpose3d: y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the
     * adjoint of conv3d.
     *
     * <p>x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w'] with
     * extents as in conv_transpose2d. Same as PyTorch's conv_transpose3d.
     *
     * <p>Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
     *
     * <p>This node is the operand x.
     *
     * @param kernel an operand
     * @param options sets options
     * @return the node
     */
    public Node convTranspose3d(Node kernel, Consumer<ConvTranspose3dOptions> options) {
        ConvTranspose3dOptions given = given(new ConvTranspose3dOptions(), options);
        return append("conv_transpose3d", given.attrs, operands(kernel, given.bias));
    }

    /**
     * The op copy_to_device: y = x.
     *
     * <p>The server chooses where a graph runs, so nothing is moved. The gradient passes through.
     *
     * <p>Gradient: g.
     *
     * @return the node
     */
    public Node copyToDevice() {
        return append("copy_to_device", new Attrs(), operands());
    }

    /**
     * The op cos: y = cos x.
     *
     * <p>Gradient: −g · sin x.
     *
     * @return the node
     */
    public Node cos() {
        return append("cos", new Attrs(), operands());
    }

    /**
     * The op cosh: y = cosh x.
     *
     * <p>Gradient: g · sinh x.
     *
     * @return the node
     */
    public Node cosh() {
        return append("cosh", new Attrs(), operands());
    }

    /** Options of crossEntropy. */
    public static final class CrossEntropyOptions {
        private final Attrs attrs = new Attrs();

        private CrossEntropyOptions() {}

        /**
         * How to combine the losses; none: return each one; one of mean, sum, none; default mean.
         *
         * @param reduction the value
         * @return these options
         */
        public CrossEntropyOptions reduction(String reduction) {
            attrs.with("reduction", reduction);
            return this;
        }
    }

    /**
     * The op cross_entropy: loss = −Σ p · log softmax(logits) over the last axis, the axis of the classes; then the
     * mean over all rows.
     *
     * <p>logits [..., classes]; targets are either class indices [...] of an integer dtype (p is 1 at the index), or
     * the distribution p itself, a float tensor of the logits' shape. Indices lie in [0, classes).
     *
     * <p>Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if
     * float.
     *
     * <p>This node is the operand logits.
     *
     * @param targets an operand
     * @return the node
     */
    public Node crossEntropy(Node targets) {
        return append("cross_entropy", new Attrs(), operands(targets));
    }

    /**
     * The op cross_entropy: loss = −Σ p · log softmax(logits) over the last axis, the axis of the classes; then the
     * mean over all rows.
     *
     * <p>logits [..., classes]; targets are either class indices [...] of an integer dtype (p is 1 at the index), or
     * the distribution p itself, a float tensor of the logits' shape. Indices lie in [0, classes).
     *
     * <p>Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if
     * float.
     *
     * <p>This node is the operand logits.
     *
     * @param targets an operand
     * @param options sets options
     * @return the node
     */
    public Node crossEntropy(Node targets, Consumer<CrossEntropyOptions> options) {
        CrossEntropyOptions given = given(new CrossEntropyOptions(), options);
        return append("cross_entropy", given.attrs, operands(targets));
    }

    /** Options of cumlogsumexp. */
    public static final class CumlogsumexpOptions {
        private final Attrs attrs = new Attrs();

        private CumlogsumexpOptions() {}

        /**
         * Whether to accumulate from the end to the front; default false.
         *
         * @param reverse the value
         * @return these options
         */
        public CumlogsumexpOptions reverse(boolean reverse) {
            attrs.with("reverse", reverse);
            return this;
        }
    }

    /**
     * The op cumlogsumexp: y[i] = log(exp x[0] + … + exp x[i]) along <code>axis</code>, stable; with
     * <code>reverse</code>, of x[i], …, x[n − 1].
     *
     * <p>As in logsumexp: if all elements so far are −inf, y is −inf and the gradient is 0; elements that are inf share
     * the gradient. If an element so far is NaN, y and the gradient are NaN. Integers give float64. PyTorch:
     * <code>logcumsumexp</code>. JAX: <code>lax.cumlogsumexp</code>, which also has <code>reverse</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: Σ g[k] · exp(x[i] − y[k]) over k ≥ i.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to accumulate along
     * @return the node
     */
    public Node cumlogsumexp(long axis) {
        return append("cumlogsumexp", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cumlogsumexp: y[i] = log(exp x[0] + … + exp x[i]) along <code>axis</code>, stable; with
     * <code>reverse</code>, of x[i], …, x[n − 1].
     *
     * <p>As in logsumexp: if all elements so far are −inf, y is −inf and the gradient is 0; elements that are inf share
     * the gradient. If an element so far is NaN, y and the gradient are NaN. Integers give float64. PyTorch:
     * <code>logcumsumexp</code>. JAX: <code>lax.cumlogsumexp</code>, which also has <code>reverse</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: Σ g[k] · exp(x[i] − y[k]) over k ≥ i.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to accumulate along
     * @param options sets options
     * @return the node
     */
    public Node cumlogsumexp(long axis, Consumer<CumlogsumexpOptions> options) {
        CumlogsumexpOptions given = given(new CumlogsumexpOptions(), options);
        return append("cumlogsumexp", given.attrs.with("axis", axis), operands());
    }

    /** Options of cummax. */
    public static final class CummaxOptions {
        private final Attrs attrs = new Attrs();

        private CummaxOptions() {}

        /**
         * Whether to accumulate from the end to the front; default false.
         *
         * @param reverse the value
         * @return these options
         */
        public CummaxOptions reverse(boolean reverse) {
            attrs.with("reverse", reverse);
            return this;
        }
    }

    /**
     * The op cummax: y[i] = the largest of x[0], …, x[i] along <code>axis</code>; with <code>reverse</code>, of x[i],
     * …, x[n − 1].
     *
     * <p>NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
     * PyTorch: the values of <code>cummax</code>, whose gradient goes to the last entry in a tie. JAX:
     * <code>lax.cummax</code>, which also has <code>reverse</code>, and in which ties share the gradient.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to accumulate along
     * @return the node
     */
    public Node cummax(long axis) {
        return append("cummax", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cummax: y[i] = the largest of x[0], …, x[i] along <code>axis</code>; with <code>reverse</code>, of x[i],
     * …, x[n − 1].
     *
     * <p>NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
     * PyTorch: the values of <code>cummax</code>, whose gradient goes to the last entry in a tie. JAX:
     * <code>lax.cummax</code>, which also has <code>reverse</code>, and in which ties share the gradient.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to accumulate along
     * @param options sets options
     * @return the node
     */
    public Node cummax(long axis, Consumer<CummaxOptions> options) {
        CummaxOptions given = given(new CummaxOptions(), options);
        return append("cummax", given.attrs.with("axis", axis), operands());
    }

    /** Options of cummin. */
    public static final class CumminOptions {
        private final Attrs attrs = new Attrs();

        private CumminOptions() {}

        /**
         * Whether to accumulate from the end to the front; default false.
         *
         * @param reverse the value
         * @return these options
         */
        public CumminOptions reverse(boolean reverse) {
            attrs.with("reverse", reverse);
            return this;
        }
    }

    /**
     * The op cummin: y[i] = the smallest of x[0], …, x[i] along <code>axis</code>; with <code>reverse</code>, of x[i],
     * …, x[n − 1].
     *
     * <p>NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
     * PyTorch: the values of <code>cummin</code>, whose gradient goes to the last entry in a tie. JAX:
     * <code>lax.cummin</code>, which also has <code>reverse</code>, and in which ties share the gradient.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to accumulate along
     * @return the node
     */
    public Node cummin(long axis) {
        return append("cummin", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cummin: y[i] = the smallest of x[0], …, x[i] along <code>axis</code>; with <code>reverse</code>, of x[i],
     * …, x[n − 1].
     *
     * <p>NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
     * PyTorch: the values of <code>cummin</code>, whose gradient goes to the last entry in a tie. JAX:
     * <code>lax.cummin</code>, which also has <code>reverse</code>, and in which ties share the gradient.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to accumulate along
     * @param options sets options
     * @return the node
     */
    public Node cummin(long axis, Consumer<CumminOptions> options) {
        CumminOptions given = given(new CumminOptions(), options);
        return append("cummin", given.attrs.with("axis", axis), operands());
    }

    /** Options of cumprod. */
    public static final class CumprodOptions {
        private final Attrs attrs = new Attrs();

        private CumprodOptions() {}

        /**
         * Whether to accumulate from the end to the front; default false.
         *
         * @param reverse the value
         * @return these options
         */
        public CumprodOptions reverse(boolean reverse) {
            attrs.with("reverse", reverse);
            return this;
        }
    }

    /**
     * The op cumprod: y[i] = x[0] · … · x[i] along <code>axis</code>; with <code>reverse</code>, x[i] · … · x[n − 1].
     *
     * <p>Integers and bool are multiplied in int64, float16 in float32. The gradient is exact for any number of zeros,
     * and so are higher derivatives. PyTorch and NumPy: <code>cumprod</code>. JAX: <code>lax.cumprod</code>, which also
     * has <code>reverse</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: (product of the entries before i) · Σ g[k] · (product of the entries after i, up to k), over k ≥ i.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to accumulate along
     * @return the node
     */
    public Node cumprod(long axis) {
        return append("cumprod", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cumprod: y[i] = x[0] · … · x[i] along <code>axis</code>; with <code>reverse</code>, x[i] · … · x[n − 1].
     *
     * <p>Integers and bool are multiplied in int64, float16 in float32. The gradient is exact for any number of zeros,
     * and so are higher derivatives. PyTorch and NumPy: <code>cumprod</code>. JAX: <code>lax.cumprod</code>, which also
     * has <code>reverse</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: (product of the entries before i) · Σ g[k] · (product of the entries after i, up to k), over k ≥ i.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to accumulate along
     * @param options sets options
     * @return the node
     */
    public Node cumprod(long axis, Consumer<CumprodOptions> options) {
        CumprodOptions given = given(new CumprodOptions(), options);
        return append("cumprod", given.attrs.with("axis", axis), operands());
    }

    /** Options of cumsum. */
    public static final class CumsumOptions {
        private final Attrs attrs = new Attrs();

        private CumsumOptions() {}

        /**
         * Whether to accumulate from the end to the front; since opset 2; default false.
         *
         * @param reverse the value
         * @return these options
         */
        public CumsumOptions reverse(boolean reverse) {
            attrs.with("reverse", reverse);
            return this;
        }
    }

    /**
     * The op cumsum: y[i] = x[0] + … + x[i] along <code>axis</code>; with <code>reverse</code>, x[i] + … + x[n − 1].
     *
     * <p>Integers and bool are summed in int64, float16 in float32. PyTorch and NumPy: <code>cumsum</code>. JAX:
     * <code>lax.cumsum</code>, which also has <code>reverse</code>.
     *
     * <p>Gradient: g, summed from the end.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to sum along
     * @return the node
     */
    public Node cumsum(long axis) {
        return append("cumsum", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cumsum: y[i] = x[0] + … + x[i] along <code>axis</code>; with <code>reverse</code>, x[i] + … + x[n − 1].
     *
     * <p>Integers and bool are summed in int64, float16 in float32. PyTorch and NumPy: <code>cumsum</code>. JAX:
     * <code>lax.cumsum</code>, which also has <code>reverse</code>.
     *
     * <p>Gradient: g, summed from the end.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to sum along
     * @param options sets options
     * @return the node
     */
    public Node cumsum(long axis, Consumer<CumsumOptions> options) {
        CumsumOptions given = given(new CumsumOptions(), options);
        return append("cumsum", given.attrs.with("axis", axis), operands());
    }

    /**
     * The op det: y = det x of square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 for an empty matrix.
     *
     * <p>If the determinant may overflow or underflow, use <code>slogdet</code>. The first two derivatives are exact
     * for singular matrices, too; their third ones are NaN or infinite. A matrix with NaN gives NaN; the other matrices
     * of the batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
     * PyTorch, JAX and NumPy: <code>linalg.det</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g · the conjugate cofactors of x; if x is invertible, those are the conjugate of det(x) x⁻ᵀ.
     *
     * @return the node
     */
    public Node det() {
        return append("det", new Attrs(), operands());
    }

    /** Options of diag. */
    public static final class DiagOptions {
        private final Attrs attrs = new Attrs();

        private DiagOptions() {}

        /**
         * Diagonal: 0 is the main one, positive above it, negative below it; default 0.
         *
         * @param offset the value
         * @return these options
         */
        public DiagOptions offset(long offset) {
            attrs.with("offset", offset);
            return this;
        }
    }

    /**
     * The op diag: The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; for a vector, the matrix with that
     * diagonal.
     *
     * <p>x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m]. A
     * negative offset counts downwards: y[…, i] = x[…, i − offset, i].
     *
     * <p>Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
     *
     * @return the node
     */
    public Node diag() {
        return append("diag", new Attrs(), operands());
    }

    /**
     * The op diag: The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; for a vector, the matrix with that
     * diagonal.
     *
     * <p>x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m]. A
     * negative offset counts downwards: y[…, i] = x[…, i − offset, i].
     *
     * <p>Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node diag(Consumer<DiagOptions> options) {
        DiagOptions given = given(new DiagOptions(), options);
        return append("diag", given.attrs, operands());
    }

    /**
     * The op digamma: y = ψ(x) = Γ'(x) / Γ(x); −∞ at 0, NaN at −1, −2, …. Accurate to 10 ulp; near its zeros below −1
     * to 1e-15.
     *
     * <p>Near its negative poles all digits are correct; SciPy loses one digit for each digit by which x is closer to a
     * pole.
     *
     * <p>Gradient: g · polygamma(x, order=1).
     *
     * @return the node
     */
    public Node digamma() {
        return append("digamma", new Attrs(), operands());
    }

    /**
     * The op div: y = a / b, elementwise, with NumPy broadcasting; integers give floats, x / 0 gives ±inf or NaN.
     *
     * <p>Gradient: da = g / b, db = −y · g / b.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node div(Node b) {
        return append("div", new Attrs(), operands(b));
    }

    /**
     * The op div_scalar: y = x / scalar. A scalar of 0 gives ±inf or NaN, as in <code>div</code>.
     *
     * <p>Gradient: g / scalar.
     *
     * <p>This node is the operand x.
     *
     * @param scalar constant operand
     * @return the node
     */
    public Node divScalar(double scalar) {
        return append("div_scalar", new Attrs().with("scalar", scalar), operands());
    }

    /** Options of eigh. */
    public static final class EighOptions {
        private final Attrs attrs = new Attrs();

        private EighOptions() {}

        /**
         * Gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces matter; one of nan,
         * whole; default nan.
         *
         * @param degenerate the value
         * @return these options
         */
        public EighOptions degenerate(String degenerate) {
            attrs.with("degenerate", degenerate);
            return this;
        }
    }

    /**
     * The op eigh: w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2 = v diag(w) vᴴ, with vᴴ v = 1.
     *
     * <p>x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], one vector per column. If you read only eigenvalues,
     * vectors are not computed. The gradient of eigenvalues alone is valid at equal ones, too, if your function treats
     * these alike.
     *
     * <p>LAPACK chooses the signs of vectors, and the phases of complex ones. Use v only in functions that depend
     * neither on them nor on single vectors of equal eigenvalues.
     *
     * <p>Eigenvalues closer than 16 n ε ‖x‖ count as equal. For a matrix with equal eigenvalues, the gradient of a
     * function of v is NaN. If <code>degenerate</code> is whole, the pair is left out instead. That is correct if the
     * function depends on whole eigenspaces only, as a projector does, and wrong otherwise. For v √w vᵀ, which does
     * not, use <code>symmetric_function</code>. Second derivatives are NaN if a pair was left out, and also for
     * eigenvalues alone if some are equal.
     *
     * <p>A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the
     * batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
     *
     * <p>PyTorch: <code>linalg.eigh</code>, which reads the lower triangle by default. JAX: <code>linalg.eigh</code>,
     * which symmetrizes its input by default. At equal eigenvalues, their gradients are NaN or rounding noise. M. B.
     * Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008),
     * section 3.1.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F if v is
     * unread.
     *
     * @return the node
     */
    public Node eigh() {
        return append("eigh", new Attrs(), operands());
    }

    /**
     * The op eigh: w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2 = v diag(w) vᴴ, with vᴴ v = 1.
     *
     * <p>x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], one vector per column. If you read only eigenvalues,
     * vectors are not computed. The gradient of eigenvalues alone is valid at equal ones, too, if your function treats
     * these alike.
     *
     * <p>LAPACK chooses the signs of vectors, and the phases of complex ones. Use v only in functions that depend
     * neither on them nor on single vectors of equal eigenvalues.
     *
     * <p>Eigenvalues closer than 16 n ε ‖x‖ count as equal. For a matrix with equal eigenvalues, the gradient of a
     * function of v is NaN. If <code>degenerate</code> is whole, the pair is left out instead. That is correct if the
     * function depends on whole eigenspaces only, as a projector does, and wrong otherwise. For v √w vᵀ, which does
     * not, use <code>symmetric_function</code>. Second derivatives are NaN if a pair was left out, and also for
     * eigenvalues alone if some are equal.
     *
     * <p>A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the
     * batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
     *
     * <p>PyTorch: <code>linalg.eigh</code>, which reads the lower triangle by default. JAX: <code>linalg.eigh</code>,
     * which symmetrizes its input by default. At equal eigenvalues, their gradients are NaN or rounding noise. M. B.
     * Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008),
     * section 3.1.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F if v is
     * unread.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node eigh(Consumer<EighOptions> options) {
        EighOptions given = given(new EighOptions(), options);
        return append("eigh", given.attrs, operands());
    }

    /** Options of elu. */
    public static final class EluOptions {
        private final Attrs attrs = new Attrs();

        private EluOptions() {}

        /**
         * Limit of −y for x → −∞; default 1.0.
         *
         * @param alpha the value
         * @return these options
         */
        public EluOptions alpha(double alpha) {
            attrs.with("alpha", alpha);
            return this;
        }
    }

    /**
     * The op elu: y = x for x &gt; 0, else alpha · (eˣ − 1). Derivatives at 0 are the left ones: alpha.
     *
     * <p>D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, else g · alpha · eˣ.
     *
     * @return the node
     */
    public Node elu() {
        return append("elu", new Attrs(), operands());
    }

    /**
     * The op elu: y = x for x &gt; 0, else alpha · (eˣ − 1). Derivatives at 0 are the left ones: alpha.
     *
     * <p>D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, else g · alpha · eˣ.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node elu(Consumer<EluOptions> options) {
        EluOptions given = given(new EluOptions(), options);
        return append("elu", given.attrs, operands());
    }

    /** Options of embedding. */
    public static final class EmbeddingOptions {
        private final Attrs attrs = new Attrs();

        private EmbeddingOptions() {}

        /**
         * Whether negative indices count from the end; −1 is the last; since opset 2; default false.
         *
         * @param fromEnd the value
         * @return these options
         */
        public EmbeddingOptions fromEnd(boolean fromEnd) {
            attrs.with("from_end", fromEnd);
            return this;
        }

        /**
         * Row that gets no gradient but is read as usual; default: none; since opset 2.
         *
         * @param paddingIdx the value
         * @return these options
         */
        public EmbeddingOptions paddingIdx(long paddingIdx) {
            attrs.with("padding_idx", paddingIdx);
            return this;
        }
    }

    /**
     * The op embedding: y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.
     *
     * <p>weight [rows, features…], indices of any shape with entries in [0, rows), y [shape of indices…, features…].
     * With <code>from_end</code>, entries lie in [−rows, rows), and negative ones count from the end. PyTorch:
     * <code>functional.embedding</code>, which rejects negative indices and has <code>padding_idx</code>. JAX:
     * weight[indices], which accepts negative indices and moves those out of range to the nearest row.
     *
     * <p>Gradient: d weight = g, added to the rows that were read: repeated indices accumulate; none for indices.
     *
     * <p>This node is the operand weight.
     *
     * @param indices an operand
     * @return the node
     */
    public Node embedding(Node indices) {
        return append("embedding", new Attrs(), operands(indices));
    }

    /**
     * The op embedding: y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.
     *
     * <p>weight [rows, features…], indices of any shape with entries in [0, rows), y [shape of indices…, features…].
     * With <code>from_end</code>, entries lie in [−rows, rows), and negative ones count from the end. PyTorch:
     * <code>functional.embedding</code>, which rejects negative indices and has <code>padding_idx</code>. JAX:
     * weight[indices], which accepts negative indices and moves those out of range to the nearest row.
     *
     * <p>Gradient: d weight = g, added to the rows that were read: repeated indices accumulate; none for indices.
     *
     * <p>This node is the operand weight.
     *
     * @param indices an operand
     * @param options sets options
     * @return the node
     */
    public Node embedding(Node indices, Consumer<EmbeddingOptions> options) {
        EmbeddingOptions given = given(new EmbeddingOptions(), options);
        return append("embedding", given.attrs, operands(indices));
    }

    /**
     * The op equal: y = (a = b), elementwise; false if either is NaN.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node equal(Node b) {
        return append("equal", new Attrs(), operands(b));
    }

    /**
     * The op erf: y = erf x = 2/√π ∫₀ˣ exp(−t²) dt. Accurate to 2 units in the last place (ulp).
     *
     * <p>Gradient: g · 2/√π · exp(−x²).
     *
     * @return the node
     */
    public Node erf() {
        return append("erf", new Attrs(), operands());
    }

    /**
     * The op erfc: y = erfc x = 1 − erf x. Accurate to 2 units in the last place (ulp), even where y is small.
     *
     * <p>Gradient: −g · 2/√π · exp(−x²).
     *
     * @return the node
     */
    public Node erfc() {
        return append("erfc", new Attrs(), operands());
    }

    /**
     * The op erfinv: y such that erf y = x: ±∞ at ±1, NaN beyond. Accurate to 2 ulp.
     *
     * <p>Gradient: g · √π/2 · exp(y²).
     *
     * @return the node
     */
    public Node erfinv() {
        return append("erfinv", new Attrs(), operands());
    }

    /**
     * The op exp: y = eˣ.
     *
     * <p>Gradient: g · y.
     *
     * @return the node
     */
    public Node exp() {
        return append("exp", new Attrs(), operands());
    }

    /**
     * The op expm1: y = eˣ − 1, accurate near 0.
     *
     * <p>Gradient: g · eˣ.
     *
     * @return the node
     */
    public Node expm1() {
        return append("expm1", new Attrs(), operands());
    }

    /** Options of fft. */
    public static final class FftOptions {
        private final Attrs attrs = new Attrs();

        private FftOptions() {}

        /**
         * Axes to transform; default: the last axis, or as many last axes as there are sizes.
         *
         * @param axes the value
         * @return these options
         */
        public FftOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Points on each axis, to which x is cut or zero-padded; default: x's extents.
         *
         * @param sizes the value
         * @return these options
         */
        public FftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }

        /**
         * Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
         * forward; default backward.
         *
         * @param norm the value
         * @return these options
         */
        public FftOptions norm(String norm) {
            attrs.with("norm", norm);
            return this;
        }
    }

    /**
     * The op fft: y[k] = Σ x[j] exp(−2πi j k / n) over <code>axes</code>, each of n points: the discrete Fourier
     * transform.
     *
     * <p><code>norm</code> is as in NumPy: <code>forward</code> divides by n, <code>ortho</code> by √n. Real operands
     * are converted to complex. float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy:
     * <code>fft</code>; over several axes, <code>fft2</code> and <code>fftn</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: ifft(g) without the division by n; for a real operand, its real part.
     *
     * @return the node
     */
    public Node fft() {
        return append("fft", new Attrs(), operands());
    }

    /**
     * The op fft: y[k] = Σ x[j] exp(−2πi j k / n) over <code>axes</code>, each of n points: the discrete Fourier
     * transform.
     *
     * <p><code>norm</code> is as in NumPy: <code>forward</code> divides by n, <code>ortho</code> by √n. Real operands
     * are converted to complex. float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy:
     * <code>fft</code>; over several axes, <code>fft2</code> and <code>fftn</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: ifft(g) without the division by n; for a real operand, its real part.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node fft(Consumer<FftOptions> options) {
        FftOptions given = given(new FftOptions(), options);
        return append("fft", given.attrs, operands());
    }

    /**
     * The op flatten: y = x with adjacent axes merged into one; by default, all axes. A 0-d tensor becomes [1].
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>This node is the operand x.
     *
     * @param axes adjacent axes to merge; default: all
     * @return the node
     */
    public Node flatten(long... axes) {
        return append("flatten", new Attrs().with("axes", axes), operands());
    }

    /**
     * The op flip: y = x with the order of the entries reversed on <code>axes</code>; by default, on all axes.
     *
     * <p>Gradient: g, flipped.
     *
     * <p>This node is the operand x.
     *
     * @param axes axes to reverse; default: all
     * @return the node
     */
    public Node flip(long... axes) {
        return append("flip", new Attrs().with("axes", axes), operands());
    }

    /**
     * The op floor: y = ⌊x⌋: x rounded down to a whole number.
     *
     * @return the node
     */
    public Node floor() {
        return append("floor", new Attrs(), operands());
    }

    /**
     * The op floor_div: y = ⌊a / b⌋, elementwise with broadcasting: Python's //; <code>mod</code> is the remainder.
     * Integer division by 0 gives 0.
     *
     * <p>PyTorch and NumPy: <code>floor_divide</code>. JAX: <code>jnp.floor_divide</code>, which gives −1 for integer
     * division by 0.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node floorDiv(Node b) {
        return append("floor_div", new Attrs(), operands(b));
    }

    /** Options of gather. */
    public static final class GatherOptions {
        private final Attrs attrs = new Attrs();
        private Node index;

        private GatherOptions() {}

        /**
         * Sets an operand.
         *
         * @param index a node of the same graph
         * @return these options
         */
        public GatherOptions index(Node index) {
            this.index = index;
            return this;
        }

        /**
         * Axis to index; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public GatherOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Positions on the axis, instead of <code>index</code>.
         *
         * @param indices the value
         * @return these options
         */
        public GatherOptions indices(long... indices) {
            attrs.with("indices", indices);
            return this;
        }

        /**
         * Whether negative indices count from the end; −1 is the last; since opset 2; default false.
         *
         * @param fromEnd the value
         * @return these options
         */
        public GatherOptions fromEnd(boolean fromEnd) {
            attrs.with("from_end", fromEnd);
            return this;
        }
    }

    /**
     * The op gather: y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes.
     *
     * <p><code>index</code> has x's rank and may be smaller than x on the other axes, as in PyTorch; y has its shape.
     * With one operand, the list <code>indices</code> selects slices: y is x at those positions of the axis. Indices
     * lie in [0, extent). With <code>from_end</code>, they lie in [−extent, extent), and negative ones count from the
     * end, as in x[i] of PyTorch, JAX and NumPy. PyTorch: <code>gather</code>, which rejects negative indices. JAX:
     * <code>take_along_axis</code>.
     *
     * <p>Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
     *
     * @return the node
     */
    public Node gather() {
        return append("gather", new Attrs(), operands());
    }

    /**
     * The op gather: y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes.
     *
     * <p><code>index</code> has x's rank and may be smaller than x on the other axes, as in PyTorch; y has its shape.
     * With one operand, the list <code>indices</code> selects slices: y is x at those positions of the axis. Indices
     * lie in [0, extent). With <code>from_end</code>, they lie in [−extent, extent), and negative ones count from the
     * end, as in x[i] of PyTorch, JAX and NumPy. PyTorch: <code>gather</code>, which rejects negative indices. JAX:
     * <code>take_along_axis</code>.
     *
     * <p>Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
     *
     * <p>This node is the operand x.
     *
     * @param index an operand; null if it is absent
     * @return the node
     */
    public Node gather(Node index) {
        return append("gather", new Attrs(), operands(index));
    }

    /**
     * The op gather: y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes.
     *
     * <p><code>index</code> has x's rank and may be smaller than x on the other axes, as in PyTorch; y has its shape.
     * With one operand, the list <code>indices</code> selects slices: y is x at those positions of the axis. Indices
     * lie in [0, extent). With <code>from_end</code>, they lie in [−extent, extent), and negative ones count from the
     * end, as in x[i] of PyTorch, JAX and NumPy. PyTorch: <code>gather</code>, which rejects negative indices. JAX:
     * <code>take_along_axis</code>.
     *
     * <p>Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node gather(Consumer<GatherOptions> options) {
        GatherOptions given = given(new GatherOptions(), options);
        return append("gather", given.attrs, operands(given.index));
    }

    /** Options of gelu. */
    public static final class GeluOptions {
        private final Attrs attrs = new Attrs();

        private GeluOptions() {}

        /**
         * None: use the error function; tanh: approximate it; one of none, tanh; default none.
         *
         * @param approximate the value
         * @return these options
         */
        public GeluOptions approximate(String approximate) {
            attrs.with("approximate", approximate);
            return this;
        }
    }

    /**
     * The op gelu: y = x · Φ(x), with Φ the standard normal distribution function; 0 at −∞.
     *
     * <p>With <code>approximate</code> set to tanh, y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which many models
     * were trained with. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
     *
     * <p>Gradient: g · (Φ(x) + x · Φ′(x)).
     *
     * @return the node
     */
    public Node gelu() {
        return append("gelu", new Attrs(), operands());
    }

    /**
     * The op gelu: y = x · Φ(x), with Φ the standard normal distribution function; 0 at −∞.
     *
     * <p>With <code>approximate</code> set to tanh, y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which many models
     * were trained with. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
     *
     * <p>Gradient: g · (Φ(x) + x · Φ′(x)).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node gelu(Consumer<GeluOptions> options) {
        GeluOptions given = given(new GeluOptions(), options);
        return append("gelu", given.attrs, operands());
    }

    /**
     * The op get_output: One result of an op with several results: y = x[index].
     *
     * <p>Gradient: g for that result, 0 for the other results of the op.
     *
     * <p>This node is the operand x.
     *
     * @param index position of the result, from 0
     * @return the node
     */
    public Node getOutput(long index) {
        return append("get_output", new Attrs().with("index", index), operands());
    }

    /**
     * The op grad: The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
     *
     * <p>Other nodes can use the result, and you can differentiate it again, to any order. x may be any float node. If
     * y does not depend on x, the result is zeros. A complex y needs a cotangent. With respect to a complex x, the
     * gradient is ∂/∂Re x + i ∂/∂Im x.
     *
     * <p>Gradient: that of the nodes that compute the gradient.
     *
     * <p>This node is the operand y.
     *
     * @param x an operand
     * @return the node
     */
    public Node grad(Node x) {
        return append("grad", new Attrs(), operands(x));
    }

    /**
     * The op grad: The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
     *
     * <p>Other nodes can use the result, and you can differentiate it again, to any order. x may be any float node. If
     * y does not depend on x, the result is zeros. A complex y needs a cotangent. With respect to a complex x, the
     * gradient is ∂/∂Re x + i ∂/∂Im x.
     *
     * <p>Gradient: that of the nodes that compute the gradient.
     *
     * <p>This node is the operand y.
     *
     * @param x an operand
     * @param cotangent an operand; null if it is absent
     * @return the node
     */
    public Node grad(Node x, Node cotangent) {
        return append("grad", new Attrs(), operands(x, cotangent));
    }

    /**
     * The op greater: y = (a &gt; b), elementwise; false if either is NaN.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node greater(Node b) {
        return append("greater", new Attrs(), operands(b));
    }

    /**
     * The op greater_equal: y = (a ≥ b), elementwise; false if either is NaN.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node greaterEqual(Node b) {
        return append("greater_equal", new Attrs(), operands(b));
    }

    /** Options of groupNorm. */
    public static final class GroupNormOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private GroupNormOptions() {}

        /**
         * Sets an operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public GroupNormOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public GroupNormOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Positive number added to the variance or mean square; default 1e-05.
         *
         * @param eps the value
         * @return these options
         */
        public GroupNormOptions eps(double eps) {
            attrs.with("eps", eps);
            return this;
        }
    }

    /**
     * The op group_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of
     * channels per example.
     *
     * <p>x [n, channels, …]; weight and bias [channels]. The channels are divided into <code>groups</code> equal
     * groups. The variance has n in the denominator. PyTorch: <code>group_norm</code>. Flax: <code>GroupNorm</code>,
     * with channels last. Y. Wu, K. He, "Group normalization" (2018).
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: as in layer_norm, over each group.
     *
     * <p>This node is the operand x.
     *
     * @param groups number of equal groups of channels
     * @return the node
     */
    public Node groupNorm(long groups) {
        return append("group_norm", new Attrs().with("groups", groups), operands());
    }

    /**
     * The op group_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of
     * channels per example.
     *
     * <p>x [n, channels, …]; weight and bias [channels]. The channels are divided into <code>groups</code> equal
     * groups. The variance has n in the denominator. PyTorch: <code>group_norm</code>. Flax: <code>GroupNorm</code>,
     * with channels last. Y. Wu, K. He, "Group normalization" (2018).
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: as in layer_norm, over each group.
     *
     * <p>This node is the operand x.
     *
     * @param groups number of equal groups of channels
     * @param weight an operand; null if it is absent
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node groupNorm(long groups, Node weight, Node bias) {
        return append("group_norm", new Attrs().with("groups", groups), operands(weight, bias));
    }

    /**
     * The op group_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of
     * channels per example.
     *
     * <p>x [n, channels, …]; weight and bias [channels]. The channels are divided into <code>groups</code> equal
     * groups. The variance has n in the denominator. PyTorch: <code>group_norm</code>. Flax: <code>GroupNorm</code>,
     * with channels last. Y. Wu, K. He, "Group normalization" (2018).
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: as in layer_norm, over each group.
     *
     * <p>This node is the operand x.
     *
     * @param groups number of equal groups of channels
     * @param options sets options
     * @return the node
     */
    public Node groupNorm(long groups, Consumer<GroupNormOptions> options) {
        GroupNormOptions given = given(new GroupNormOptions(), options);
        return append("group_norm", given.attrs.with("groups", groups), operands(given.weight, given.bias));
    }

    /**
     * The op i0: y = I₀(x). Accurate to 5 ulp; infinite for |x| &gt; 713.98.
     *
     * <p>SciPy's is infinite from 709.78 on. NumPy: <code>i0</code>. PyTorch: <code>special.i0</code>. JAX:
     * <code>scipy.special.i0</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g · i1(x).
     *
     * @return the node
     */
    public Node i0() {
        return append("i0", new Attrs(), operands());
    }

    /**
     * The op i0e: y = exp(−|x|) I₀(x). Accurate to 4 ulp.
     *
     * <p>The derivative is accurate even for large x, where I₀ and I₁ agree in most digits. At 0, where |x| has a kink,
     * it is 0, as in PyTorch and JAX. SciPy and PyTorch: <code>special.i0e</code>. JAX: <code>bessel_i0e</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g · (i1e(x) − sign(x) · y).
     *
     * @return the node
     */
    public Node i0e() {
        return append("i0e", new Attrs(), operands());
    }

    /**
     * The op i1: y = I₁(x). Accurate to 5 ulp. At 0, the derivative is 1/2.
     *
     * <p>SciPy and PyTorch: <code>special.i1</code>. JAX: <code>scipy.special.i1</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g · (i0(x) − y / x), and g / 2 at 0.
     *
     * @return the node
     */
    public Node i1() {
        return append("i1", new Attrs(), operands());
    }

    /**
     * The op i1e: y = exp(−|x|) I₁(x). Accurate to 4 ulp. At 0, the derivative is 1/2.
     *
     * <p>SciPy and PyTorch: <code>special.i1e</code>. JAX: <code>bessel_i1e</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0.
     *
     * @return the node
     */
    public Node i1e() {
        return append("i1e", new Attrs(), operands());
    }

    /**
     * The op identity: y = x, as a separate node.
     *
     * <p>Gradient: g.
     *
     * @return the node
     */
    public Node identity() {
        return append("identity", new Attrs(), operands());
    }

    /** Options of ifft. */
    public static final class IfftOptions {
        private final Attrs attrs = new Attrs();

        private IfftOptions() {}

        /**
         * Axes to transform; default: the last axis, or as many last axes as there are sizes.
         *
         * @param axes the value
         * @return these options
         */
        public IfftOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Points on each axis, to which x is cut or zero-padded; default: x's extents.
         *
         * @param sizes the value
         * @return these options
         */
        public IfftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }

        /**
         * Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
         * forward; default backward.
         *
         * @param norm the value
         * @return these options
         */
        public IfftOptions norm(String norm) {
            attrs.with("norm", norm);
            return this;
        }
    }

    /**
     * The op ifft: y[j] = Σ x[k] exp(2πi j k / n) / n over <code>axes</code>, each of n points: the inverse of
     * <code>fft</code>.
     *
     * <p><code>norm</code> is as in NumPy: <code>forward</code> does not divide, <code>ortho</code> divides by √n. Real
     * operands are converted to complex. float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy:
     * <code>ifft</code>; over several axes, <code>ifft2</code> and <code>ifftn</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: fft(g) / n; for a real operand, its real part.
     *
     * @return the node
     */
    public Node ifft() {
        return append("ifft", new Attrs(), operands());
    }

    /**
     * The op ifft: y[j] = Σ x[k] exp(2πi j k / n) / n over <code>axes</code>, each of n points: the inverse of
     * <code>fft</code>.
     *
     * <p><code>norm</code> is as in NumPy: <code>forward</code> does not divide, <code>ortho</code> divides by √n. Real
     * operands are converted to complex. float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy:
     * <code>ifft</code>; over several axes, <code>ifft2</code> and <code>ifftn</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: fft(g) / n; for a real operand, its real part.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node ifft(Consumer<IfftOptions> options) {
        IfftOptions given = given(new IfftOptions(), options);
        return append("ifft", given.attrs, operands());
    }

    /**
     * The op igamma: y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), with broadcasting.
     *
     * <p>On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. The
     * derivative with respect to x is accurate to 1e-12 of its value. The derivative with respect to a is accurate to
     * 1e-12 (JAX's has an absolute error of 1e-7; PyTorch has none). It cannot be differentiated again with respect to
     * a. SciPy and PyTorch: <code>special.gammainc</code>. JAX: <code>igamma</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = g · ∂P/∂a, an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a).
     *
     * <p>This node is the operand a.
     *
     * @param x an operand
     * @return the node
     */
    public Node igamma(Node x) {
        return append("igamma", new Attrs(), operands(x));
    }

    /**
     * The op igammac: y = Q(a, x) = 1 − P(a, x), with broadcasting; accurate even where y is small.
     *
     * <p>On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12.
     * Derivatives are those of <code>igamma</code> with the opposite sign. SciPy and PyTorch:
     * <code>special.gammaincc</code>. JAX: <code>igammac</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = −g · ∂P/∂a, an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
     *
     * <p>This node is the operand a.
     *
     * @param x an operand
     * @return the node
     */
    public Node igammac(Node x) {
        return append("igammac", new Attrs(), operands(x));
    }

    /**
     * The op imag: y = Im x; 0 for a real x. JAX and NumPy: <code>imag</code>. PyTorch's <code>imag</code> rejects a
     * real x.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: i · g.
     *
     * @return the node
     */
    public Node imag() {
        return append("imag", new Attrs(), operands());
    }

    /**
     * The op inv: y = x⁻¹, for matrices on the last two axes.
     *
     * <p>If x is singular, y is NaN, or very large if rounding hides the singularity; the other matrices of the batch
     * are unaffected. To solve a system, use <code>solve</code>, which is faster and more accurate. Integers give
     * float64; float16 is computed in a wider float and rounded once.
     *
     * <p>Gradient: −yᴴ g yᴴ.
     *
     * @return the node
     */
    public Node inv() {
        return append("inv", new Attrs(), operands());
    }

    /** Options of irfft. */
    public static final class IrfftOptions {
        private final Attrs attrs = new Attrs();

        private IrfftOptions() {}

        /**
         * Axes to transform; default: the last axis, or as many last axes as there are sizes.
         *
         * @param axes the value
         * @return these options
         */
        public IrfftOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Points on each axis, to which x is cut or zero-padded; default: x's extents.
         *
         * @param sizes the value
         * @return these options
         */
        public IrfftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }

        /**
         * Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
         * forward; default backward.
         *
         * @param norm the value
         * @return these options
         */
        public IrfftOptions norm(String norm) {
            attrs.with("norm", norm);
            return this;
        }
    }

    /**
     * The op irfft: The real y whose <code>rfft</code> is x, with n = <code>sizes</code> points on the last of
     * <code>axes</code>; default: 2 (m − 1) for m entries.
     *
     * <p>The imaginary parts of entry 0, and of entry n / 2 if n is even, are ignored. Real operands are converted to
     * complex. float16 gives float16, integers give float64. <code>norm</code> is as in <code>ifft</code>. PyTorch, JAX
     * and NumPy: <code>irfft</code>; over several axes, <code>irfft2</code> and <code>irfftn</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: rfft(g) / n, with the inner entries doubled.
     *
     * @return the node
     */
    public Node irfft() {
        return append("irfft", new Attrs(), operands());
    }

    /**
     * The op irfft: The real y whose <code>rfft</code> is x, with n = <code>sizes</code> points on the last of
     * <code>axes</code>; default: 2 (m − 1) for m entries.
     *
     * <p>The imaginary parts of entry 0, and of entry n / 2 if n is even, are ignored. Real operands are converted to
     * complex. float16 gives float16, integers give float64. <code>norm</code> is as in <code>ifft</code>. PyTorch, JAX
     * and NumPy: <code>irfft</code>; over several axes, <code>irfft2</code> and <code>irfftn</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: rfft(g) / n, with the inner entries doubled.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node irfft(Consumer<IrfftOptions> options) {
        IrfftOptions given = given(new IrfftOptions(), options);
        return append("irfft", given.attrs, operands());
    }

    /**
     * The op is_finite: y = true if x is neither infinite nor NaN.
     *
     * @return the node
     */
    public Node isFinite() {
        return append("is_finite", new Attrs(), operands());
    }

    /** Options of layerNorm. */
    public static final class LayerNormOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private LayerNormOptions() {}

        /**
         * Sets an operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public LayerNormOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * Sets an operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public LayerNormOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Axes to normalise over; default [-1].
         *
         * @param axes the value
         * @return these options
         */
        public LayerNormOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Positive number added to the variance or mean square; default 1e-05.
         *
         * @param eps the value
         * @return these options
         */
        public LayerNormOptions eps(double eps) {
            attrs.with("eps", eps);
            return this;
        }
    }

    /**
     * The op layer_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance (n in the
     * denominator) over <code>axes</code>.
     *
     * <p>weight and bias have x's extents on <code>axes</code>, in ascending order. CJC normalises the whole tensor:
     * for that, pass all axes. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization" (2016).
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
     *
     * @return the node
     */
    public Node layerNorm() {
        return append("layer_norm", new Attrs(), operands());
    }

    /**
     * The op layer_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance (n in the
     * denominator) over <code>axes</code>.
     *
     * <p>weight and bias have x's extents on <code>axes</code>, in ascending order. CJC normalises the whole tensor:
     * for that, pass all axes. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization" (2016).
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
     *
     * <p>This node is the operand x.
     *
     * @param weight an operand; null if it is absent
     * @param bias an operand; null if it is absent
     * @return the node
     */
    public Node layerNorm(Node weight, Node bias) {
        return append("layer_norm", new Attrs(), operands(weight, bias));
    }

    /**
     * The op layer_norm: y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance (n in the
     * denominator) over <code>axes</code>.
     *
     * <p>weight and bias have x's extents on <code>axes</code>, in ascending order. CJC normalises the whole tensor:
     * for that, pass all axes. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization" (2016).
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node layerNorm(Consumer<LayerNormOptions> options) {
        LayerNormOptions given = given(new LayerNormOptions(), options);
        return append("layer_norm", given.attrs, operands(given.weight, given.bias));
    }

    /** Options of leakyRelu. */
    public static final class LeakyReluOptions {
        private final Attrs attrs = new Attrs();

        private LeakyReluOptions() {}

        /**
         * Slope for x ≤ 0; default 0.01.
         *
         * @param alpha the value
         * @return these options
         */
        public LeakyReluOptions alpha(double alpha) {
            attrs.with("alpha", alpha);
            return this;
        }
    }

    /**
     * The op leaky_relu: y = x for x &gt; 0, else alpha · x. The derivative at 0 is alpha.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, else g · alpha.
     *
     * @return the node
     */
    public Node leakyRelu() {
        return append("leaky_relu", new Attrs(), operands());
    }

    /**
     * The op leaky_relu: y = x for x &gt; 0, else alpha · x. The derivative at 0 is alpha.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, else g · alpha.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node leakyRelu(Consumer<LeakyReluOptions> options) {
        LeakyReluOptions given = given(new LeakyReluOptions(), options);
        return append("leaky_relu", given.attrs, operands());
    }

    /**
     * The op less: y = (a &lt; b), elementwise; false if either is NaN.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node less(Node b) {
        return append("less", new Attrs(), operands(b));
    }

    /**
     * The op less_equal: y = (a ≤ b), elementwise; false if either is NaN.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node lessEqual(Node b) {
        return append("less_equal", new Attrs(), operands(b));
    }

    /**
     * The op lgamma: y = log |Γ(x)|; ∞ at 0, −1, −2, …. Accurate to 4 ulp; near zeros below 0 (−2.457, −2.748, −3.144,
     * …) to 1e-15.
     *
     * <p>Near its positive zeros, 1 and 2, all digits are correct; SciPy has no correct digit within 1e-16 of them.
     *
     * <p>Gradient: g · digamma(x).
     *
     * @return the node
     */
    public Node lgamma() {
        return append("lgamma", new Attrs(), operands());
    }

    /** Options of linear. */
    public static final class LinearOptions {
        private final Attrs attrs = new Attrs();
        private Node b;

        private LinearOptions() {}

        /**
         * Sets an operand.
         *
         * @param b a node of the same graph
         * @return these options
         */
        public LinearOptions b(Node b) {
            this.b = b;
            return this;
        }

        /**
         * Op applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; default none.
         *
         * @param activation the value
         * @return these options
         */
        public LinearOptions activation(String activation) {
            attrs.with("activation", activation);
            return this;
        }
    }

    /**
     * The op linear: y = activation(x &#64; w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b, nothing
     * is added.
     *
     * <p>b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; wᵀ, dw = xᵀ &#64; h, db = Σ h over the rows.
     *
     * <p>This node is the operand x.
     *
     * @param w an operand
     * @return the node
     */
    public Node linear(Node w) {
        return append("linear", new Attrs(), operands(w));
    }

    /**
     * The op linear: y = activation(x &#64; w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b, nothing
     * is added.
     *
     * <p>b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; wᵀ, dw = xᵀ &#64; h, db = Σ h over the rows.
     *
     * <p>This node is the operand x.
     *
     * @param w an operand
     * @param b an operand; null if it is absent
     * @return the node
     */
    public Node linear(Node w, Node b) {
        return append("linear", new Attrs(), operands(w, b));
    }

    /**
     * The op linear: y = activation(x &#64; w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b, nothing
     * is added.
     *
     * <p>b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; wᵀ, dw = xᵀ &#64; h, db = Σ h over the rows.
     *
     * <p>This node is the operand x.
     *
     * @param w an operand
     * @param options sets options
     * @return the node
     */
    public Node linear(Node w, Consumer<LinearOptions> options) {
        LinearOptions given = given(new LinearOptions(), options);
        return append("linear", given.attrs, operands(w, given.b));
    }

    /**
     * The op log: y = ln x: −∞ at 0, NaN for x &lt; 0.
     *
     * <p>For a complex x, y = ln |x| + i · angle x. The branch cut is the negative real axis; on it, the sign of the
     * imaginary zero selects the side (C99).
     *
     * <p>Gradient: g / x.
     *
     * @return the node
     */
    public Node log() {
        return append("log", new Attrs(), operands());
    }

    /**
     * The op log1p: y = ln(1 + x), accurate near 0.
     *
     * <p>Gradient: g / (1 + x).
     *
     * @return the node
     */
    public Node log1p() {
        return append("log1p", new Attrs(), operands());
    }

    /**
     * The op log2: y = log₂ x: −∞ at 0, NaN for x &lt; 0.
     *
     * <p>Gradient: g / (x · ln 2).
     *
     * @return the node
     */
    public Node log2() {
        return append("log2", new Attrs(), operands());
    }

    /** Options of logEps. */
    public static final class LogEpsOptions {
        private final Attrs attrs = new Attrs();

        private LogEpsOptions() {}

        /**
         * Number added to x; default 1e-05.
         *
         * @param eps the value
         * @return these options
         */
        public LogEpsOptions eps(double eps) {
            attrs.with("eps", eps);
            return this;
        }
    }

    /**
     * The op log_eps: y = ln(x + eps): finite at 0.
     *
     * <p>Gradient: g / (x + eps).
     *
     * @return the node
     */
    public Node logEps() {
        return append("log_eps", new Attrs(), operands());
    }

    /**
     * The op log_eps: y = ln(x + eps): finite at 0.
     *
     * <p>Gradient: g / (x + eps).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node logEps(Consumer<LogEpsOptions> options) {
        LogEpsOptions given = given(new LogEpsOptions(), options);
        return append("log_eps", given.attrs, operands());
    }

    /**
     * The op log_ndtr: y = log Φ(x), with Φ the standard normal distribution function. Accurate to 4 ulp in both tails.
     *
     * <p>The derivative φ(x) / Φ(x) and its own derivatives keep their relative accuracy where Φ(x) underflows. For x
     * &gt; 0, the derivative is as accurate as exp(−x²/2): to x²/2 ulp.
     *
     * <p>Gradient: g · φ(x) / Φ(x), with φ the density.
     *
     * @return the node
     */
    public Node logNdtr() {
        return append("log_ndtr", new Attrs(), operands());
    }

    /**
     * The op log_sigmoid: y = ln sigmoid x = −softplus(−x).
     *
     * <p>Gradient: g · sigmoid(−x).
     *
     * @return the node
     */
    public Node logSigmoid() {
        return append("log_sigmoid", new Attrs(), operands());
    }

    /** Options of logSoftmax. */
    public static final class LogSoftmaxOptions {
        private final Attrs attrs = new Attrs();

        private LogSoftmaxOptions() {}

        /**
         * Axis to normalise along; default -1.
         *
         * @param axis the value
         * @return these options
         */
        public LogSoftmaxOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }
    }

    /**
     * The op log_softmax: y = x − log Σ exp(x) along <code>axis</code>, of x's shape; stable: computed from x − max x.
     * Integers give float64.
     *
     * <p>The largest x has y = −log(1 + Σ of the others), all of whose digits are kept. A row that contains only −inf
     * gives NaN.
     *
     * <p>Gradient: g − exp(y) · Σ g, with the sum along the axis, computed as −g · expm1(y) − (Σ g − g) · exp(y).
     *
     * @return the node
     */
    public Node logSoftmax() {
        return append("log_softmax", new Attrs(), operands());
    }

    /**
     * The op log_softmax: y = x − log Σ exp(x) along <code>axis</code>, of x's shape; stable: computed from x − max x.
     * Integers give float64.
     *
     * <p>The largest x has y = −log(1 + Σ of the others), all of whose digits are kept. A row that contains only −inf
     * gives NaN.
     *
     * <p>Gradient: g − exp(y) · Σ g, with the sum along the axis, computed as −g · expm1(y) − (Σ g − g) · exp(y).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node logSoftmax(Consumer<LogSoftmaxOptions> options) {
        LogSoftmaxOptions given = given(new LogSoftmaxOptions(), options);
        return append("log_softmax", given.attrs, operands());
    }

    /**
     * The op logaddexp: y = ln(eᵃ + eᵇ), stable. If both are −∞, y is −∞ and the gradients are 0; if both are ∞, each
     * gets half of g.
     *
     * <p>Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node logaddexp(Node b) {
        return append("logaddexp", new Attrs(), operands(b));
    }

    /**
     * The op logical_and: y = a and b, elementwise with broadcasting. Nonzero numbers, including NaN, are true.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node logicalAnd(Node b) {
        return append("logical_and", new Attrs(), operands(b));
    }

    /**
     * The op logical_not: y = not x, elementwise. Nonzero numbers, including NaN, are true.
     *
     * @return the node
     */
    public Node logicalNot() {
        return append("logical_not", new Attrs(), operands());
    }

    /**
     * The op logical_or: y = a or b (or both), elementwise with broadcasting. Nonzero numbers, including NaN, are true.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node logicalOr(Node b) {
        return append("logical_or", new Attrs(), operands(b));
    }

    /** Options of logsumexp. */
    public static final class LogsumexpOptions {
        private final Attrs attrs = new Attrs();

        private LogsumexpOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public LogsumexpOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public LogsumexpOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op logsumexp: y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf if no elements are
     * reduced.
     *
     * <p>If all elements are −inf, y is −inf and the gradient is 0. Elements that are inf share the gradient. If an
     * element is NaN, y and the gradient are NaN. Integers give float64.
     *
     * <p>Gradient: g · exp(x − y).
     *
     * @return the node
     */
    public Node logsumexp() {
        return append("logsumexp", new Attrs(), operands());
    }

    /**
     * The op logsumexp: y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf if no elements are
     * reduced.
     *
     * <p>If all elements are −inf, y is −inf and the gradient is 0. Elements that are inf share the gradient. If an
     * element is NaN, y and the gradient are NaN. Integers give float64.
     *
     * <p>Gradient: g · exp(x − y).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node logsumexp(Consumer<LogsumexpOptions> options) {
        LogsumexpOptions given = given(new LogsumexpOptions(), options);
        return append("logsumexp", given.attrs, operands());
    }

    /** Options of lstsq. */
    public static final class LstsqOptions {
        private final Attrs attrs = new Attrs();

        private LstsqOptions() {}

        /**
         * Singular values up to this fraction of the largest count as 0; default: none, and the columns must be
         * independent.
         *
         * @param rcond the value
         * @return these options
         */
        public LstsqOptions rcond(double rcond) {
            attrs.with("rcond", rcond);
            return this;
        }
    }

    /**
     * The op lstsq: y that minimises |a y − b|: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].
     *
     * <p>y [n], [batch…, n] or [batch…, n, k]. b holds vectors if it is 1-d, or if it has a's shape without the last
     * axis and its last two axes cannot be matrices of m rows; otherwise it holds matrices. Without <code>rcond</code>,
     * y is computed by <code>qr</code>, and the columns of a must be independent. With <code>rcond</code>, y is
     * computed by <code>pinv</code>: singular values up to that fraction of the largest count as 0, and y is the
     * solution of least norm. Integers give float64; float16 is computed in float32 and rounded once. PyTorch, JAX and
     * NumPy: the first result of <code>linalg.lstsq</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node lstsq(Node b) {
        return append("lstsq", new Attrs(), operands(b));
    }

    /**
     * The op lstsq: y that minimises |a y − b|: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].
     *
     * <p>y [n], [batch…, n] or [batch…, n, k]. b holds vectors if it is 1-d, or if it has a's shape without the last
     * axis and its last two axes cannot be matrices of m rows; otherwise it holds matrices. Without <code>rcond</code>,
     * y is computed by <code>qr</code>, and the columns of a must be independent. With <code>rcond</code>, y is
     * computed by <code>pinv</code>: singular values up to that fraction of the largest count as 0, and y is the
     * solution of least norm. Integers give float64; float16 is computed in float32 and rounded once. PyTorch, JAX and
     * NumPy: the first result of <code>linalg.lstsq</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @param options sets options
     * @return the node
     */
    public Node lstsq(Node b, Consumer<LstsqOptions> options) {
        LstsqOptions given = given(new LstsqOptions(), options);
        return append("lstsq", given.attrs, operands(b));
    }

    /**
     * The op lu: permutation, l, u with x[permutation] = l u: rows are exchanged so that no entry of l is larger than
     * 1.
     *
     * <p>x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal, u
     * [batch…, k, n] upper triangular, k = min(m, n). To solve a system, use <code>solve</code>, which is faster.
     * Complex numbers are compared by |Re| + |Im|. The gradient is valid if the first k columns of x[permutation] are
     * independent in their first k rows; otherwise it is infinite or NaN. The permutation has no gradient. A matrix
     * with an infinity or NaN gives NaN in l and u, and its rows are not exchanged; the other matrices of the batch are
     * unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
     *
     * <p>PyTorch: <code>linalg.lu</code>, which returns a matrix instead of the permutation. JAX:
     * <code>lax.linalg.lu</code>, which returns the results in another order. F. de Hoog, R. Anderssen, M. Lukas,
     * Differentiation of matrix functionals using triangular factorization (2011).
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: for square matrices, l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ with rows moved back to their places.
     *
     * @return the node
     */
    public Node lu() {
        return append("lu", new Attrs(), operands());
    }

    /**
     * The op make_complex: y = re + i · im, elementwise with broadcasting; complex64 for float32 and narrower floats,
     * else complex128.
     *
     * <p>Infinities, NaN and the signs of zeros in both parts are preserved, unlike in the expression re + im · i.
     * PyTorch: <code>complex</code>. JAX: <code>lax.complex</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: d re = Re g, d im = Im g.
     *
     * <p>This node is the operand re.
     *
     * @param im an operand
     * @return the node
     */
    public Node makeComplex(Node im) {
        return append("make_complex", new Attrs(), operands(im));
    }

    /**
     * The op map_lookup: The value under one key of a map that is stored as one tensor, with keys in insertion order.
     *
     * <p>The leading axis is split into <code>total_keys</code> equal parts, and y is the part <code>key_index</code>;
     * the axis remains.
     *
     * <p>Gradient: g in that part, 0 in the others.
     *
     * <p>This node is the operand x.
     *
     * @param keyIndex position of the key in insertion order, from 0
     * @param totalKeys number of keys in the map
     * @return the node
     */
    public Node mapLookup(long keyIndex, long totalKeys) {
        return append("map_lookup", new Attrs().with("key_index", keyIndex).with("total_keys", totalKeys), operands());
    }

    /**
     * The op matmul: y = a &#64; b, as in NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j]; the leading axes broadcast.
     *
     * <p>A 1-d operand is a row on the left and a column on the right; that axis is dropped from the result. float16
     * accumulates in float32. Integers and bool are multiplied in their own dtype, as in NumPy.
     *
     * <p>Gradient: da = g &#64; bᴴ, db = aᴴ &#64; g, summed over batch axes that were broadcast.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node matmul(Node b) {
        return append("matmul", new Attrs(), operands(b));
    }

    /**
     * The op matrix_exp: y = exp x = 1 + x + x² / 2 + … of square matrices on the last two axes.
     *
     * <p>x is halved until its norm is below 1.1, a Taylor polynomial of degree 18 is evaluated, and the result is
     * squared as often. The error is a few rounding units times the norm of y. A matrix with an infinity or NaN gives
     * NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float
     * and rounded once. The gradient, to any order, is an exponential again.
     *
     * <p>PyTorch: <code>linalg.matrix_exp</code>. JAX and SciPy: <code>linalg.expm</code>. P. Bader, S. Blanes, F.
     * Casas, Computing the matrix exponential with an optimized Taylor polynomial approximation (2019). For the
     * derivative: I. Najfeld, T. F. Havel (1995), and A. H. Al-Mohy, N. J. Higham (2009).
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: the upper right block of exp [[xᴴ, g], [0, xᴴ]].
     *
     * @return the node
     */
    public Node matrixExp() {
        return append("matrix_exp", new Attrs(), operands());
    }

    /**
     * The op matrix_power: y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ is the
     * power of the inverse.
     *
     * <p>Computed by repeated squaring, with about 2 log₂ k products. A negative power of a singular matrix is NaN, or
     * very large if rounding hides the singularity. Integers give float64; float16 is computed in a wider float and
     * rounded once. PyTorch, JAX and NumPy: <code>linalg.matrix_power</code>; in JAX and NumPy, integers stay integers.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, through the products.
     *
     * <p>This node is the operand x.
     *
     * @param k exponent; may be 0 or negative
     * @return the node
     */
    public Node matrixPower(long k) {
        return append("matrix_power", new Attrs().with("k", k), operands());
    }

    /**
     * The op matrix_rank: y = the number of singular values larger than max(m, n) ε times the largest: int64, [batch…,
     * m, n] → [batch…].
     *
     * <p>ε is that of x's dtype. A matrix with an infinity or NaN has rank 0. PyTorch, JAX and NumPy:
     * <code>linalg.matrix_rank</code> without a tolerance.
     *
     * <p>Since opset 2.
     *
     * @return the node
     */
    public Node matrixRank() {
        return append("matrix_rank", new Attrs(), operands());
    }

    /** Options of max. */
    public static final class MaxOptions {
        private final Attrs attrs = new Attrs();

        private MaxOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public MaxOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public MaxOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op max: y = max x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
     *
     * <p>Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
     *
     * @return the node
     */
    public Node max() {
        return append("max", new Attrs(), operands());
    }

    /**
     * The op max: y = max x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
     *
     * <p>Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node max(Consumer<MaxOptions> options) {
        MaxOptions given = given(new MaxOptions(), options);
        return append("max", given.attrs, operands());
    }

    /** Options of maxPool1d. */
    public static final class MaxPool1dOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool1dOptions() {}

        /**
         * Distance between windows along each spatial axis; default: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool1dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Padding on both sides of each axis; at most half the kernel size; default [0].
         *
         * @param padding the value
         * @return these options
         */
        public MaxPool1dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance between a window's taps along each axis; default [1].
         *
         * @param dilation the value
         * @return these options
         */
        public MaxPool1dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Whether to count a last window that extends past the end padding but starts before it; default false.
         *
         * @param ceiling the value
         * @return these options
         */
        public MaxPool1dOptions ceiling(boolean ceiling) {
            attrs.with("ceiling", ceiling);
            return this;
        }
    }

    /**
     * The op max_pool1d: y[…, i] = the largest element of the window at i; NaN if it contains NaN. x [..., w]; padding
     * counts as −∞.
     *
     * <p>w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with <code>ceiling</code>, ⌈…⌉ + 1.
     * PyTorch: <code>max_pool1d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>. JAX:
     * <code>lax.reduce_window</code> with window_dilation; it has no ceiling mode.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool1d(long... kernelSize) {
        return append("max_pool1d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op max_pool1d: y[…, i] = the largest element of the window at i; NaN if it contains NaN. x [..., w]; padding
     * counts as −∞.
     *
     * <p>w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with <code>ceiling</code>, ⌈…⌉ + 1.
     * PyTorch: <code>max_pool1d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>. JAX:
     * <code>lax.reduce_window</code> with window_dilation; it has no ceiling mode.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options sets options
     * @return the node
     */
    public Node maxPool1d(long[] kernelSize, Consumer<MaxPool1dOptions> options) {
        MaxPool1dOptions given = given(new MaxPool1dOptions(), options);
        return append("max_pool1d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** Options of maxPool2d. */
    public static final class MaxPool2dOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool2dOptions() {}

        /**
         * Distance between windows along each spatial axis; default: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool2dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Padding on both sides of each spatial axis; at most half the kernel size; default [0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public MaxPool2dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }
    }

    /**
     * The op max_pool2d: y[…, i, j] = the largest element of the window at (i, j); NaN if the window contains NaN.
     *
     * <p>x [..., h, w]; padding counts as −∞. Same as PyTorch's max_pool2d.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool2d(long... kernelSize) {
        return append("max_pool2d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op max_pool2d: y[…, i, j] = the largest element of the window at (i, j); NaN if the window contains NaN.
     *
     * <p>x [..., h, w]; padding counts as −∞. Same as PyTorch's max_pool2d.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options sets options
     * @return the node
     */
    public Node maxPool2d(long[] kernelSize, Consumer<MaxPool2dOptions> options) {
        MaxPool2dOptions given = given(new MaxPool2dOptions(), options);
        return append("max_pool2d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** Options of maxPool2dBack. */
    public static final class MaxPool2dBackOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool2dBackOptions() {}

        /**
         * Distance between windows along each spatial axis; default: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool2dBackOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Padding on both sides of each spatial axis; at most half the kernel size; default [0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public MaxPool2dBackOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }
    }

    /**
     * The op max_pool2d_back: y[…, h, w] = Σ g[…, i, j] over the windows (i, j) whose first maximum, in row-major
     * order, is x[…, h, w].
     *
     * <p>The gradient of max_pool2d with respect to x for the cotangent g [..., h', w'], with x [..., h, w]; 0 at all
     * other elements. NaN counts as a maximum.
     *
     * <p>Gradient: dg = the cotangent at max_pool2d_indices; none for x: the result is piecewise constant in x.
     *
     * <p>This node is the operand g.
     *
     * @param x an operand
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool2dBack(Node x, long... kernelSize) {
        return append("max_pool2d_back", new Attrs().with("kernel_size", kernelSize), operands(x));
    }

    /**
     * The op max_pool2d_back: y[…, h, w] = Σ g[…, i, j] over the windows (i, j) whose first maximum, in row-major
     * order, is x[…, h, w].
     *
     * <p>The gradient of max_pool2d with respect to x for the cotangent g [..., h', w'], with x [..., h, w]; 0 at all
     * other elements. NaN counts as a maximum.
     *
     * <p>Gradient: dg = the cotangent at max_pool2d_indices; none for x: the result is piecewise constant in x.
     *
     * <p>This node is the operand g.
     *
     * @param x an operand
     * @param kernelSize extents of the windows along each spatial axis
     * @param options sets options
     * @return the node
     */
    public Node maxPool2dBack(Node x, long[] kernelSize, Consumer<MaxPool2dBackOptions> options) {
        MaxPool2dBackOptions given = given(new MaxPool2dBackOptions(), options);
        return append("max_pool2d_back", given.attrs.with("kernel_size", kernelSize), operands(x));
    }

    /** Options of maxPool2dIndices. */
    public static final class MaxPool2dIndicesOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool2dIndicesOptions() {}

        /**
         * Distance between windows along each spatial axis; default: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool2dIndicesOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Padding on both sides of each spatial axis; at most half the kernel size; default [0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public MaxPool2dIndicesOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }
    }

    /**
     * The op max_pool2d_indices: y[…, i, j] = the position h · width + w of the first maximum (in row-major order) of
     * the window at (i, j).
     *
     * <p>Positions are int64 and flat within each plane, as in PyTorch's return_indices. NaN counts as a maximum.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool2dIndices(long... kernelSize) {
        return append("max_pool2d_indices", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op max_pool2d_indices: y[…, i, j] = the position h · width + w of the first maximum (in row-major order) of
     * the window at (i, j).
     *
     * <p>Positions are int64 and flat within each plane, as in PyTorch's return_indices. NaN counts as a maximum.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options sets options
     * @return the node
     */
    public Node maxPool2dIndices(long[] kernelSize, Consumer<MaxPool2dIndicesOptions> options) {
        MaxPool2dIndicesOptions given = given(new MaxPool2dIndicesOptions(), options);
        return append("max_pool2d_indices", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** Options of maxPool3d. */
    public static final class MaxPool3dOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool3dOptions() {}

        /**
         * Distance between windows along each spatial axis; default: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool3dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Padding on both sides of each axis; at most half the kernel size; default [0, 0, 0].
         *
         * @param padding the value
         * @return these options
         */
        public MaxPool3dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance between a window's taps along each axis; default [1, 1, 1].
         *
         * @param dilation the value
         * @return these options
         */
        public MaxPool3dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Whether to count a last window that extends past the end padding but starts before it; default false.
         *
         * @param ceiling the value
         * @return these options
         */
        public MaxPool3dOptions ceiling(boolean ceiling) {
            attrs.with("ceiling", ceiling);
            return this;
        }
    }

    /**
     * The op max_pool3d: y[…, i, j, k] = the largest element of the window at (i, j, k); NaN if it contains NaN. x
     * [..., d, h, w].
     *
     * <p>Padding counts as −∞. Extents are as in max_pool1d. To pool planes with dilation or <code>ceiling</code>, use
     * a first kernel size of 1. PyTorch: <code>max_pool3d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>.
     * JAX: <code>lax.reduce_window</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool3d(long... kernelSize) {
        return append("max_pool3d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op max_pool3d: y[…, i, j, k] = the largest element of the window at (i, j, k); NaN if it contains NaN. x
     * [..., d, h, w].
     *
     * <p>Padding counts as −∞. Extents are as in max_pool1d. To pool planes with dilation or <code>ceiling</code>, use
     * a first kernel size of 1. PyTorch: <code>max_pool3d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>.
     * JAX: <code>lax.reduce_window</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>This node is the operand x.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options sets options
     * @return the node
     */
    public Node maxPool3d(long[] kernelSize, Consumer<MaxPool3dOptions> options) {
        MaxPool3dOptions given = given(new MaxPool3dOptions(), options);
        return append("max_pool3d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /**
     * The op maximum: y = the larger of a and b, elementwise with broadcasting; NaN if either is NaN.
     *
     * <p>Gradient: da = g where a &gt; b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node maximum(Node b) {
        return append("maximum", new Attrs(), operands(b));
    }

    /** Options of mean. */
    public static final class MeanOptions {
        private final Attrs attrs = new Attrs();

        private MeanOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public MeanOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public MeanOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op mean: y = Σ x / n over axes, n the number of elements reduced; NaN if n = 0. Integers give float64.
     *
     * <p>Gradient: g / n, broadcast back over the axes.
     *
     * @return the node
     */
    public Node mean() {
        return append("mean", new Attrs(), operands());
    }

    /**
     * The op mean: y = Σ x / n over axes, n the number of elements reduced; NaN if n = 0. Integers give float64.
     *
     * <p>Gradient: g / n, broadcast back over the axes.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node mean(Consumer<MeanOptions> options) {
        MeanOptions given = given(new MeanOptions(), options);
        return append("mean", given.attrs, operands());
    }

    /** Options of min. */
    public static final class MinOptions {
        private final Attrs attrs = new Attrs();

        private MinOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public MinOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public MinOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op min: y = min x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
     *
     * <p>Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
     *
     * @return the node
     */
    public Node min() {
        return append("min", new Attrs(), operands());
    }

    /**
     * The op min: y = min x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
     *
     * <p>Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node min(Consumer<MinOptions> options) {
        MinOptions given = given(new MinOptions(), options);
        return append("min", given.attrs, operands());
    }

    /**
     * The op minimum: y = the smaller of a and b, elementwise with broadcasting; NaN if either is NaN.
     *
     * <p>Gradient: da = g where a &lt; b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node minimum(Node b) {
        return append("minimum", new Attrs(), operands(b));
    }

    /** Options of mlpLayer. */
    public static final class MlpLayerOptions {
        private final Attrs attrs = new Attrs();

        private MlpLayerOptions() {}

        /**
         * Op applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; default none.
         *
         * @param activation the value
         * @return these options
         */
        public MlpLayerOptions activation(String activation) {
            attrs.with("activation", activation);
            return this;
        }
    }

    /**
     * The op mlp_layer: y = activation(x &#64; wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].
     *
     * <p>b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
     * CJC's layer uses the tanh form of <code>gelu</code>: for that, build the layer from its parts.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; w, dw = hᵀ &#64; x, db = Σ h over the rows.
     *
     * <p>This node is the operand x.
     *
     * @param w an operand
     * @param b an operand
     * @return the node
     */
    public Node mlpLayer(Node w, Node b) {
        return append("mlp_layer", new Attrs(), operands(w, b));
    }

    /**
     * The op mlp_layer: y = activation(x &#64; wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].
     *
     * <p>b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
     * CJC's layer uses the tanh form of <code>gelu</code>: for that, build the layer from its parts.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; w, dw = hᵀ &#64; x, db = Σ h over the rows.
     *
     * <p>This node is the operand x.
     *
     * @param w an operand
     * @param b an operand
     * @param options sets options
     * @return the node
     */
    public Node mlpLayer(Node w, Node b, Consumer<MlpLayerOptions> options) {
        MlpLayerOptions given = given(new MlpLayerOptions(), options);
        return append("mlp_layer", given.attrs, operands(w, b));
    }

    /**
     * The op mod: y = a − b · ⌊a / b⌋: the remainder with the divisor's sign, as in Python's % and NumPy's mod.
     *
     * <p>A float modulo 0 is NaN, an integer modulo 0 is 0.
     *
     * <p>Gradient: da = g, db = −g · ⌊a / b⌋.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node mod(Node b) {
        return append("mod", new Attrs(), operands(b));
    }

    /** Options of mseLoss. */
    public static final class MseLossOptions {
        private final Attrs attrs = new Attrs();

        private MseLossOptions() {}

        /**
         * How to combine the losses; none: return each one; one of mean, sum, none; default mean.
         *
         * @param reduction the value
         * @return these options
         */
        public MseLossOptions reduction(String reduction) {
            attrs.with("reduction", reduction);
            return this;
        }
    }

    /**
     * The op mse_loss: loss = (x − y)², elementwise for equal shapes; then the mean.
     *
     * <p>Gradient: dx = g · 2 (x − y) / n, dy = −dx.
     *
     * <p>This node is the operand x.
     *
     * @param y an operand
     * @return the node
     */
    public Node mseLoss(Node y) {
        return append("mse_loss", new Attrs(), operands(y));
    }

    /**
     * The op mse_loss: loss = (x − y)², elementwise for equal shapes; then the mean.
     *
     * <p>Gradient: dx = g · 2 (x − y) / n, dy = −dx.
     *
     * <p>This node is the operand x.
     *
     * @param y an operand
     * @param options sets options
     * @return the node
     */
    public Node mseLoss(Node y, Consumer<MseLossOptions> options) {
        MseLossOptions given = given(new MseLossOptions(), options);
        return append("mse_loss", given.attrs, operands(y));
    }

    /**
     * The op mul: y = a · b, elementwise, with NumPy broadcasting.
     *
     * <p>Gradient: da = g · b, db = g · a.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node mul(Node b) {
        return append("mul", new Attrs(), operands(b));
    }

    /**
     * The op mul_scalar: y = x · scalar.
     *
     * <p>Gradient: g · scalar.
     *
     * <p>This node is the operand x.
     *
     * @param scalar constant operand
     * @return the node
     */
    public Node mulScalar(double scalar) {
        return append("mul_scalar", new Attrs().with("scalar", scalar), operands());
    }

    /**
     * The op neg: y = −x.
     *
     * <p>Gradient: −g.
     *
     * @return the node
     */
    public Node neg() {
        return append("neg", new Attrs(), operands());
    }

    /**
     * The op nonzero: The first k positions where <code>mask</code> is true, in row-major order: int64 [k, rank]; and
     * their total count: int64 [].
     *
     * <p>You set k, so that shapes do not depend on the mask. If there are more than k positions, the rest are dropped;
     * if there are fewer, the remaining rows are zeros. The count, which is not limited to k, tells you which. JAX:
     * <code>nonzero</code> with a size, which returns the columns as a tuple. PyTorch: <code>nonzero</code>, which has
     * as many rows as there are positions.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>This node is the operand mask.
     *
     * @param k number of entries in the result
     * @return the node
     */
    public Node nonzero(long k) {
        return append("nonzero", new Attrs().with("k", k), operands());
    }

    /** Options of norm. */
    public static final class NormOptions {
        private final Attrs attrs = new Attrs();

        private NormOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public NormOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public NormOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op norm: y = √Σ x² over axes, the Euclidean norm, without intermediate overflow or underflow. Integers give
     * float64.
     *
     * <p>At 0 the gradient is 0, the subgradient of least norm, and so is its own gradient. An infinite element gets g,
     * with its sign. If an element is NaN, y and the gradient are NaN.
     *
     * <p>Gradient: g · x / y, and 0 where y = 0.
     *
     * @return the node
     */
    public Node norm() {
        return append("norm", new Attrs(), operands());
    }

    /**
     * The op norm: y = √Σ x² over axes, the Euclidean norm, without intermediate overflow or underflow. Integers give
     * float64.
     *
     * <p>At 0 the gradient is 0, the subgradient of least norm, and so is its own gradient. An infinite element gets g,
     * with its sign. If an element is NaN, y and the gradient are NaN.
     *
     * <p>Gradient: g · x / y, and 0 where y = 0.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node norm(Consumer<NormOptions> options) {
        NormOptions given = given(new NormOptions(), options);
        return append("norm", given.attrs, operands());
    }

    /**
     * The op not_equal: y = (a ≠ b), elementwise; true if either is NaN.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node notEqual(Node b) {
        return append("not_equal", new Attrs(), operands(b));
    }

    /** Options of oneHot. */
    public static final class OneHotOptions {
        private final Attrs attrs = new Attrs();

        private OneHotOptions() {}

        /**
         * Dtype of the result; default float64.
         *
         * @param dtype the value
         * @return these options
         */
        public OneHotOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }
    }

    /**
     * The op one_hot: y[…, c] = 1 where indices[…] = c, else 0, on a new last axis of extent <code>classes</code>.
     * Indices lie in [0, classes).
     *
     * <p>This node is the operand indices.
     *
     * @param classes number of classes
     * @return the node
     */
    public Node oneHot(long classes) {
        return append("one_hot", new Attrs().with("classes", classes), operands());
    }

    /**
     * The op one_hot: y[…, c] = 1 where indices[…] = c, else 0, on a new last axis of extent <code>classes</code>.
     * Indices lie in [0, classes).
     *
     * <p>This node is the operand indices.
     *
     * @param classes number of classes
     * @param options sets options
     * @return the node
     */
    public Node oneHot(long classes, Consumer<OneHotOptions> options) {
        OneHotOptions given = given(new OneHotOptions(), options);
        return append("one_hot", given.attrs.with("classes", classes), operands());
    }

    /** Options of pad. */
    public static final class PadOptions {
        private final Attrs attrs = new Attrs();

        private PadOptions() {}

        /**
         * Value of the padding; default 0.0.
         *
         * @param fill the value
         * @return these options
         */
        public PadOptions fill(Number fill) {
            attrs.with("fill", fill);
            return this;
        }

        /**
         * Infinity or NaN to use instead of <code>fill</code>; float dtypes only; since opset 2; one of inf, -inf, nan.
         *
         * @param fillAs the value
         * @return these options
         */
        public PadOptions fillAs(String fillAs) {
            attrs.with("fill_as", fillAs);
            return this;
        }
    }

    /**
     * The op pad: y = x with <code>fill</code> around it: pad_width[2i] entries before and pad_width[2i + 1] after, on
     * each axis i.
     *
     * <p>To pad with an infinity or NaN, use <code>fill_as</code>. PyTorch's <code>functional.pad</code> lists the last
     * axis first. JAX's and NumPy's <code>pad</code> take pairs, in the same order as here.
     *
     * <p>Gradient: g without the padding.
     *
     * <p>This node is the operand x.
     *
     * @param padWidth entries before and after, one axis after the other
     * @return the node
     */
    public Node pad(long... padWidth) {
        return append("pad", new Attrs().with("pad_width", padWidth), operands());
    }

    /**
     * The op pad: y = x with <code>fill</code> around it: pad_width[2i] entries before and pad_width[2i + 1] after, on
     * each axis i.
     *
     * <p>To pad with an infinity or NaN, use <code>fill_as</code>. PyTorch's <code>functional.pad</code> lists the last
     * axis first. JAX's and NumPy's <code>pad</code> take pairs, in the same order as here.
     *
     * <p>Gradient: g without the padding.
     *
     * <p>This node is the operand x.
     *
     * @param padWidth entries before and after, one axis after the other
     * @param options sets options
     * @return the node
     */
    public Node pad(long[] padWidth, Consumer<PadOptions> options) {
        PadOptions given = given(new PadOptions(), options);
        return append("pad", given.attrs.with("pad_width", padWidth), operands());
    }

    /** Options of pinv. */
    public static final class PinvOptions {
        private final Attrs attrs = new Attrs();

        private PinvOptions() {}

        /**
         * Singular values up to this fraction of the largest count as 0; default: max(m, n) ε.
         *
         * @param rcond the value
         * @return these options
         */
        public PinvOptions rcond(double rcond) {
            attrs.with("rcond", rcond);
            return this;
        }
    }

    /**
     * The op pinv: y = x⁺, the Moore–Penrose pseudoinverse: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without the s that
     * are 0.
     *
     * <p>x [batch…, m, n], y [batch…, n, m]. Singular values up to <code>rcond</code> times the largest count as 0; the
     * default is max(m, n) ε. The gradient assumes constant rank. It is exact if only zeros are cut off, even with
     * equal singular values. If larger values are cut off, its relative error is their ratio to the values that remain.
     * Where the rank changes, the pseudoinverse is discontinuous. A matrix with an infinity or NaN, or for which LAPACK
     * does not converge, gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is
     * computed in a wider float and rounded once.
     *
     * <p>PyTorch: <code>linalg.pinv</code> (with rtol). JAX and NumPy: <code>linalg.pinv</code>, with other defaults.
     * G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
     * variables separate (1973), eq. 4.12.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
     *
     * @return the node
     */
    public Node pinv() {
        return append("pinv", new Attrs(), operands());
    }

    /**
     * The op pinv: y = x⁺, the Moore–Penrose pseudoinverse: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without the s that
     * are 0.
     *
     * <p>x [batch…, m, n], y [batch…, n, m]. Singular values up to <code>rcond</code> times the largest count as 0; the
     * default is max(m, n) ε. The gradient assumes constant rank. It is exact if only zeros are cut off, even with
     * equal singular values. If larger values are cut off, its relative error is their ratio to the values that remain.
     * Where the rank changes, the pseudoinverse is discontinuous. A matrix with an infinity or NaN, or for which LAPACK
     * does not converge, gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is
     * computed in a wider float and rounded once.
     *
     * <p>PyTorch: <code>linalg.pinv</code> (with rtol). JAX and NumPy: <code>linalg.pinv</code>, with other defaults.
     * G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
     * variables separate (1973), eq. 4.12.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node pinv(Consumer<PinvOptions> options) {
        PinvOptions given = given(new PinvOptions(), options);
        return append("pinv", given.attrs, operands());
    }

    /**
     * The op polygamma: y = ψ⁽ⁿ⁾(x) for n = <code>order</code>, the n-th derivative of <code>digamma</code>; order 0 is
     * <code>digamma</code> itself.
     *
     * <p>±∞ at 0, −1, −2, …, with the sign that y has to the right of 0. Accurate to 10 ulp. For even orders, near the
     * zeros below 0, accurate to 10 ulp of the sum over the nearest poles. Values below 1e-307 · n! are inaccurate or
     * 0.
     *
     * <p>The largest order is 170, because 170! is the largest factorial that fits in a float64; <code>polygamma</code>
     * of order 170 has no derivative.
     *
     * <p>Gradient: g · polygamma(x, order + 1).
     *
     * <p>This node is the operand x.
     *
     * @param order order of the derivative of digamma, 0 to 170
     * @return the node
     */
    public Node polygamma(long order) {
        return append("polygamma", new Attrs().with("order", order), operands());
    }

    /** Options of pow. */
    public static final class PowOptions {
        private final Attrs attrs = new Attrs();
        private Node b;

        private PowOptions() {}

        /**
         * Sets an operand.
         *
         * @param b a node of the same graph
         * @return these options
         */
        public PowOptions b(Node b) {
            this.b = b;
            return this;
        }

        /**
         * Exponent, if there is no operand b.
         *
         * @param exponent the value
         * @return these options
         */
        public PowOptions exponent(double exponent) {
            attrs.with("exponent", exponent);
            return this;
        }
    }

    /**
     * The op pow: y = aᵇ with broadcasting; with one operand, y = a^exponent, as in <code>pow_scalar</code>. 0⁰ = 1.
     *
     * <p>A negative a to a fractional power is NaN, and so is its derivative with respect to b. The derivative with
     * respect to b is 0 where a = 0 and b ≥ 0, and where a = ∞ and b &lt; 0. Powers of integers are integers and wrap
     * around as in NumPy. With a negative exponent they are truncated towards zero (2⁻¹ → 0, as in CuPy and PyTorch;
     * NumPy raises an error), and 0⁻¹ → 0.
     *
     * <p>Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
     *
     * @return the node
     */
    public Node pow() {
        return append("pow", new Attrs(), operands());
    }

    /**
     * The op pow: y = aᵇ with broadcasting; with one operand, y = a^exponent, as in <code>pow_scalar</code>. 0⁰ = 1.
     *
     * <p>A negative a to a fractional power is NaN, and so is its derivative with respect to b. The derivative with
     * respect to b is 0 where a = 0 and b ≥ 0, and where a = ∞ and b &lt; 0. Powers of integers are integers and wrap
     * around as in NumPy. With a negative exponent they are truncated towards zero (2⁻¹ → 0, as in CuPy and PyTorch;
     * NumPy raises an error), and 0⁻¹ → 0.
     *
     * <p>Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand; null if it is absent
     * @return the node
     */
    public Node pow(Node b) {
        return append("pow", new Attrs(), operands(b));
    }

    /**
     * The op pow: y = aᵇ with broadcasting; with one operand, y = a^exponent, as in <code>pow_scalar</code>. 0⁰ = 1.
     *
     * <p>A negative a to a fractional power is NaN, and so is its derivative with respect to b. The derivative with
     * respect to b is 0 where a = 0 and b ≥ 0, and where a = ∞ and b &lt; 0. Powers of integers are integers and wrap
     * around as in NumPy. With a negative exponent they are truncated towards zero (2⁻¹ → 0, as in CuPy and PyTorch;
     * NumPy raises an error), and 0⁻¹ → 0.
     *
     * <p>Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
     *
     * <p>This node is the operand a.
     *
     * @param options sets options
     * @return the node
     */
    public Node pow(Consumer<PowOptions> options) {
        PowOptions given = given(new PowOptions(), options);
        return append("pow", given.attrs, operands(given.b));
    }

    /**
     * The op pow_scalar: y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.
     *
     * <p>For a complex x, y = exp(exponent · log x), with the branch cut of <code>log</code>.
     *
     * <p>Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.
     *
     * <p>This node is the operand x.
     *
     * @param exponent exponent
     * @return the node
     */
    public Node powScalar(double exponent) {
        return append("pow_scalar", new Attrs().with("exponent", exponent), operands());
    }

    /** Options of prod. */
    public static final class ProdOptions {
        private final Attrs attrs = new Attrs();

        private ProdOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public ProdOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public ProdOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op prod: y = Π x over axes; 1 if no elements are reduced. Integers and bool are multiplied in int64, float16
     * in float32.
     *
     * <p>The gradient is that of a tree of products. It is exact for any number of zeros, and so are higher
     * derivatives.
     *
     * <p>Gradient: g · (product of all other elements).
     *
     * @return the node
     */
    public Node prod() {
        return append("prod", new Attrs(), operands());
    }

    /**
     * The op prod: y = Π x over axes; 1 if no elements are reduced. Integers and bool are multiplied in int64, float16
     * in float32.
     *
     * <p>The gradient is that of a tree of products. It is exact for any number of zeros, and so are higher
     * derivatives.
     *
     * <p>Gradient: g · (product of all other elements).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node prod(Consumer<ProdOptions> options) {
        ProdOptions given = given(new ProdOptions(), options);
        return append("prod", given.attrs, operands());
    }

    /**
     * The op qr: q, r with x = q r: the columns of q are orthonormal, r is upper triangular; reduced form.
     *
     * <p>x [batch…, m, n], q [batch…, m, k], r [batch…, k, n], k = min(m, n). LAPACK chooses the signs of r's diagonal;
     * each sign flips a row of r together with the column of q. Use q and r only in functions that do not depend on
     * these signs. The gradient is valid if the columns of x are independent; otherwise it is infinite or NaN. With
     * fewer rows than columns, there are values but no gradient: <code>not_differentiable</code>. A matrix with an
     * infinity or NaN gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is
     * computed in a wider float and rounded once.
     *
     * <p>PyTorch and JAX: <code>linalg.qr</code>, reduced. S. F. Walter, L. Lehmann, Algorithmic differentiation of
     * linear algebra functions with application in optimum experimental design, arXiv:1001.1654 (2010).
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none if rows &lt; columns.
     *
     * @return the node
     */
    public Node qr() {
        return append("qr", new Attrs(), operands());
    }

    /**
     * The op random_bernoulli: y = uniform &lt; p, of p's shape: true with probability p. The uniform numbers have p's
     * dtype.
     *
     * <p>Equals <code>jax.random.bernoulli</code>. PyTorch's <code>bernoulli</code> returns floats and uses a different
     * generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param p an operand
     * @return the node
     */
    public Node randomBernoulli(Node p) {
        return append("random_bernoulli", new Attrs(), operands(p));
    }

    /** Options of randomBits. */
    public static final class RandomBitsOptions {
        private final Attrs attrs = new Attrs();

        private RandomBitsOptions() {}

        /**
         * Dtype of the result; one of uint32; default uint32.
         *
         * @param dtype the value
         * @return these options
         */
        public RandomBitsOptions dtype(DType dtype) {
            attrs.with("dtype", dtype);
            return this;
        }
    }

    /**
     * The op random_bits: y = 32 random bits per element: the exclusive or of both words of counter i, row-major.
     * Equals <code>jax.random.bits</code>.
     *
     * <p>PyTorch's <code>randint</code> uses a different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param shape shape of the result
     * @return the node
     */
    public Node randomBits(long... shape) {
        return append("random_bits", new Attrs().with("shape", shape), operands());
    }

    /**
     * The op random_bits: y = 32 random bits per element: the exclusive or of both words of counter i, row-major.
     * Equals <code>jax.random.bits</code>.
     *
     * <p>PyTorch's <code>randint</code> uses a different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param shape shape of the result
     * @param options sets options
     * @return the node
     */
    public Node randomBits(long[] shape, Consumer<RandomBitsOptions> options) {
        RandomBitsOptions given = given(new RandomBitsOptions(), options);
        return append("random_bits", given.attrs.with("shape", shape), operands());
    }

    /** Options of randomCategorical. */
    public static final class RandomCategoricalOptions {
        private final Attrs attrs = new Attrs();

        private RandomCategoricalOptions() {}

        /**
         * Axis of the categories; default -1.
         *
         * @param axis the value
         * @return these options
         */
        public RandomCategoricalOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }
    }

    /**
     * The op random_categorical: y = argmax(logits + gumbel) along <code>axis</code>, int64: i with probability
     * proportional to exp(logits[i]).
     *
     * <p>Equals <code>jax.random.categorical</code>. PyTorch's <code>multinomial</code> takes weights and uses a
     * different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param logits an operand
     * @return the node
     */
    public Node randomCategorical(Node logits) {
        return append("random_categorical", new Attrs(), operands(logits));
    }

    /**
     * The op random_categorical: y = argmax(logits + gumbel) along <code>axis</code>, int64: i with probability
     * proportional to exp(logits[i]).
     *
     * <p>Equals <code>jax.random.categorical</code>. PyTorch's <code>multinomial</code> takes weights and uses a
     * different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param logits an operand
     * @param options sets options
     * @return the node
     */
    public Node randomCategorical(Node logits, Consumer<RandomCategoricalOptions> options) {
        RandomCategoricalOptions given = given(new RandomCategoricalOptions(), options);
        return append("random_categorical", given.attrs, operands(logits));
    }

    /**
     * The op random_exponential: y = −log1p(−u), u uniform in [0, 1): exponential numbers with mean 1. Equals
     * <code>jax.random.exponential</code>.
     *
     * <p>PyTorch's <code>exponential_</code> uses a different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param shape shape of the result
     * @param dtype dtype of the result; one of float32, float64
     * @return the node
     */
    public Node randomExponential(long[] shape, DType dtype) {
        return append("random_exponential", new Attrs().with("shape", shape).with("dtype", dtype), operands());
    }

    /**
     * The op random_fold_in: key = a new key [2] for each number: the words of counter (0, number mod 2³²). Equals
     * <code>jax.random.fold_in</code>.
     *
     * <p>PyTorch has no keys; use one <code>Generator</code> for each.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param number an operand
     * @return the node
     */
    public Node randomFoldIn(Node number) {
        return append("random_fold_in", new Attrs(), operands(number));
    }

    /**
     * The op random_gumbel: y = −log(−log u), u uniform in [0, 1), with 0 replaced by the smallest normal number.
     * Equals <code>jax.random.gumbel</code>.
     *
     * <p>PyTorch's <code>distributions.Gumbel</code> uses a different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param shape shape of the result
     * @param dtype dtype of the result; one of float32, float64
     * @return the node
     */
    public Node randomGumbel(long[] shape, DType dtype) {
        return append("random_gumbel", new Attrs().with("shape", shape).with("dtype", dtype), operands());
    }

    /**
     * The op random_key: key = (seed ≫ 32, seed mod 2³²): uint32 [2] from an int64 []. Equals
     * <code>jax.random.key_data(jax.random.key(seed))</code>.
     *
     * <p>PyTorch's <code>manual_seed</code> starts a different sequence, and has state.
     *
     * <p>Since opset 2.
     *
     * @return the node
     */
    public Node randomKey() {
        return append("random_key", new Attrs(), operands());
    }

    /**
     * The op random_normal: y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. Equals
     * <code>jax.random.normal</code> to 32 ulp.
     *
     * <p>PyTorch's <code>randn</code> uses a different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param shape shape of the result
     * @param dtype dtype of the result; one of float32, float64
     * @return the node
     */
    public Node randomNormal(long[] shape, DType dtype) {
        return append("random_normal", new Attrs().with("shape", shape).with("dtype", dtype), operands());
    }

    /**
     * The op random_permutation: y = 0 … k−1 in random order, int64 [k]: a stable argsort of k random unsigned 64-bit
     * numbers.
     *
     * <p><code>jax.random.permutation</code> uses a different algorithm, and PyTorch's <code>randperm</code> a
     * different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param k number of elements
     * @return the node
     */
    public Node randomPermutation(long k) {
        return append("random_permutation", new Attrs().with("k", k), operands());
    }

    /**
     * The op random_split: keys = k new keys [k, 2], each with its own sequence: the words of counters 0 … k−1. Equals
     * <code>jax.random.split</code>.
     *
     * <p>PyTorch has no keys; use one <code>Generator</code> for each.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param k number of keys
     * @return the node
     */
    public Node randomSplit(long k) {
        return append("random_split", new Attrs().with("k", k), operands());
    }

    /**
     * The op random_uniform: y = uniform numbers in [0, 1): 23 random bits (for float64, 52) over 2²³ (2⁵²). Equals
     * <code>jax.random.uniform</code>.
     *
     * <p>PyTorch's <code>rand</code> uses a different generator.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand key.
     *
     * @param shape shape of the result
     * @param dtype dtype of the result; one of float32, float64
     * @return the node
     */
    public Node randomUniform(long[] shape, DType dtype) {
        return append("random_uniform", new Attrs().with("shape", shape).with("dtype", dtype), operands());
    }

    /**
     * The op real: y = Re x; a real x is returned unchanged. PyTorch, JAX and NumPy: <code>real</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, with the imaginary part 0.
     *
     * @return the node
     */
    public Node real() {
        return append("real", new Attrs(), operands());
    }

    /**
     * The op reciprocal: y = 1 / x; integers give floats, as in <code>div</code>.
     *
     * <p>Gradient: −g · y².
     *
     * @return the node
     */
    public Node reciprocal() {
        return append("reciprocal", new Attrs(), operands());
    }

    /** Options of relu. */
    public static final class ReluOptions {
        private final Attrs attrs = new Attrs();

        private ReluOptions() {}

        /**
         * Derivative at 0; default 0.0.
         *
         * @param atZero the value
         * @return these options
         */
        public ReluOptions atZero(double atZero) {
            attrs.with("at_zero", atZero);
            return this;
        }
    }

    /**
     * The op relu: y = max(x, 0). The derivative at 0 is <code>at_zero</code>; some systems use 1.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, g · at_zero where x = 0, else 0.
     *
     * @return the node
     */
    public Node relu() {
        return append("relu", new Attrs(), operands());
    }

    /**
     * The op relu: y = max(x, 0). The derivative at 0 is <code>at_zero</code>; some systems use 1.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, g · at_zero where x = 0, else 0.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node relu(Consumer<ReluOptions> options) {
        ReluOptions given = given(new ReluOptions(), options);
        return append("relu", given.attrs, operands());
    }

    /**
     * The op rem: y = a − b · (a / b rounded towards 0): C's % and fmod, with the sign of a. <code>mod</code> has the
     * sign of b.
     *
     * <p>If b is 0, y is NaN for floats and 0 for integers. PyTorch: <code>fmod</code>. JAX: <code>lax.rem</code>,
     * which gives a for integers.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = g, db = −g · (a / b rounded towards 0).
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node rem_(Node b) {
        return append("rem", new Attrs(), operands(b));
    }

    /** Options of reshape. */
    public static final class ReshapeOptions {
        private final Attrs attrs = new Attrs();

        private ReshapeOptions() {}

        /**
         * X's shape, checked if given.
         *
         * @param originalShape the value
         * @return these options
         */
        public ReshapeOptions originalShape(long... originalShape) {
            attrs.with("original_shape", originalShape);
            return this;
        }
    }

    /**
     * The op reshape: y holds x's elements, in row-major order, in another shape; one extent may be −1 and is inferred.
     *
     * <p>An absent or empty <code>shape</code> makes a 0-d tensor. <code>original_shape</code>, if given, must be x's
     * shape.
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>This node is the operand x.
     *
     * @param shape shape of the result; one extent may be -1 and is inferred; default []
     * @return the node
     */
    public Node reshape(long... shape) {
        return append("reshape", new Attrs().with("shape", shape), operands());
    }

    /**
     * The op reshape: y holds x's elements, in row-major order, in another shape; one extent may be −1 and is inferred.
     *
     * <p>An absent or empty <code>shape</code> makes a 0-d tensor. <code>original_shape</code>, if given, must be x's
     * shape.
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>This node is the operand x.
     *
     * @param shape shape of the result; one extent may be -1 and is inferred; default []
     * @param options sets options
     * @return the node
     */
    public Node reshape(long[] shape, Consumer<ReshapeOptions> options) {
        ReshapeOptions given = given(new ReshapeOptions(), options);
        return append("reshape", given.attrs.with("shape", shape), operands());
    }

    /** Options of resize. */
    public static final class ResizeOptions {
        private final Attrs attrs = new Attrs();

        private ResizeOptions() {}

        /**
         * Axes to resize; default: the last ones.
         *
         * @param axes the value
         * @return these options
         */
        public ResizeOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Interpolation method; one of nearest, linear, cubic; default linear.
         *
         * @param method the value
         * @return these options
         */
        public ResizeOptions method(String method) {
            attrs.with("method", method);
            return this;
        }

        /**
         * Whether to antialias where x shrinks; linear and cubic only; default false.
         *
         * @param antialias the value
         * @return these options
         */
        public ResizeOptions antialias(boolean antialias) {
            attrs.with("antialias", antialias);
            return this;
        }

        /**
         * Whether to align the end entries; linear and cubic only, without antialias; default false.
         *
         * @param corners the value
         * @return these options
         */
        public ResizeOptions corners(boolean corners) {
            attrs.with("corners", corners);
            return this;
        }
    }

    /**
     * The op resize: y = x resized to new extents on some axes, by interpolation.
     *
     * <p>The centre of new entry i lies at (i + ½) · extent / size − ½; with <code>corners</code>, at i · (extent − 1)
     * / (size − 1). <code>nearest</code> reads the nearest entry, <code>linear</code> two, and <code>cubic</code> four,
     * with Keys's kernel and a = −0.75; beyond an end, the entry at that end is repeated. With <code>antialias</code>,
     * kernels widen where the tensor shrinks, a is −0.5, and positions beyond an end are ignored. PyTorch:
     * <code>interpolate</code> with modes nearest-exact, linear, bilinear, trilinear and bicubic, and with
     * align_corners. JAX: <code>image.resize</code>, whose cubic always has a = −0.5, and which has no equivalent of
     * <code>corners</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g times the weights of interpolation, added to the entries that were read.
     *
     * <p>This node is the operand x.
     *
     * @param sizes new extents
     * @return the node
     */
    public Node resize(long... sizes) {
        return append("resize", new Attrs().with("sizes", sizes), operands());
    }

    /**
     * The op resize: y = x resized to new extents on some axes, by interpolation.
     *
     * <p>The centre of new entry i lies at (i + ½) · extent / size − ½; with <code>corners</code>, at i · (extent − 1)
     * / (size − 1). <code>nearest</code> reads the nearest entry, <code>linear</code> two, and <code>cubic</code> four,
     * with Keys's kernel and a = −0.75; beyond an end, the entry at that end is repeated. With <code>antialias</code>,
     * kernels widen where the tensor shrinks, a is −0.5, and positions beyond an end are ignored. PyTorch:
     * <code>interpolate</code> with modes nearest-exact, linear, bilinear, trilinear and bicubic, and with
     * align_corners. JAX: <code>image.resize</code>, whose cubic always has a = −0.5, and which has no equivalent of
     * <code>corners</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g times the weights of interpolation, added to the entries that were read.
     *
     * <p>This node is the operand x.
     *
     * @param sizes new extents
     * @param options sets options
     * @return the node
     */
    public Node resize(long[] sizes, Consumer<ResizeOptions> options) {
        ResizeOptions given = given(new ResizeOptions(), options);
        return append("resize", given.attrs.with("sizes", sizes), operands());
    }

    /** Options of rfft. */
    public static final class RfftOptions {
        private final Attrs attrs = new Attrs();

        private RfftOptions() {}

        /**
         * Axes to transform; default: the last axis, or as many last axes as there are sizes.
         *
         * @param axes the value
         * @return these options
         */
        public RfftOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Points on each axis, to which x is cut or zero-padded; default: x's extents.
         *
         * @param sizes the value
         * @return these options
         */
        public RfftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }

        /**
         * Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
         * forward; default backward.
         *
         * @param norm the value
         * @return these options
         */
        public RfftOptions norm(String norm) {
            attrs.with("norm", norm);
            return this;
        }
    }

    /**
     * The op rfft: The first ⌊n / 2⌋ + 1 entries of <code>fft</code> of a real x on the last of <code>axes</code>; the
     * other entries are their conjugates.
     *
     * <p>float16 gives complex64, integers give complex128. <code>norm</code> is as in <code>fft</code>. PyTorch, JAX
     * and NumPy: <code>rfft</code>; over several axes, <code>rfft2</code> and <code>rfftn</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: the real part of ifft(g) without the division by n, with g padded with zeros.
     *
     * @return the node
     */
    public Node rfft() {
        return append("rfft", new Attrs(), operands());
    }

    /**
     * The op rfft: The first ⌊n / 2⌋ + 1 entries of <code>fft</code> of a real x on the last of <code>axes</code>; the
     * other entries are their conjugates.
     *
     * <p>float16 gives complex64, integers give complex128. <code>norm</code> is as in <code>fft</code>. PyTorch, JAX
     * and NumPy: <code>rfft</code>; over several axes, <code>rfft2</code> and <code>rfftn</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: the real part of ifft(g) without the division by n, with g padded with zeros.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node rfft(Consumer<RfftOptions> options) {
        RfftOptions given = given(new RfftOptions(), options);
        return append("rfft", given.attrs, operands());
    }

    /** Options of rmsNorm. */
    public static final class RmsNormOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;

        private RmsNormOptions() {}

        /**
         * Sets an operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public RmsNormOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * Axes to normalise over; default [-1].
         *
         * @param axes the value
         * @return these options
         */
        public RmsNormOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Positive number added to the variance or mean square; default 1e-05.
         *
         * @param eps the value
         * @return these options
         */
        public RmsNormOptions eps(double eps) {
            attrs.with("eps", eps);
            return this;
        }
    }

    /**
     * The op rms_norm: y = x / √(mean x² + eps) · weight, with the mean over <code>axes</code>; weight has x's extents
     * there, in ascending order.
     *
     * <p>B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
     *
     * @return the node
     */
    public Node rmsNorm() {
        return append("rms_norm", new Attrs(), operands());
    }

    /**
     * The op rms_norm: y = x / √(mean x² + eps) · weight, with the mean over <code>axes</code>; weight has x's extents
     * there, in ascending order.
     *
     * <p>B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
     *
     * <p>This node is the operand x.
     *
     * @param weight an operand; null if it is absent
     * @return the node
     */
    public Node rmsNorm(Node weight) {
        return append("rms_norm", new Attrs(), operands(weight));
    }

    /**
     * The op rms_norm: y = x / √(mean x² + eps) · weight, with the mean over <code>axes</code>; weight has x's extents
     * there, in ascending order.
     *
     * <p>B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node rmsNorm(Consumer<RmsNormOptions> options) {
        RmsNormOptions given = given(new RmsNormOptions(), options);
        return append("rms_norm", given.attrs, operands(given.weight));
    }

    /** Options of roll. */
    public static final class RollOptions {
        private final Attrs attrs = new Attrs();

        private RollOptions() {}

        /**
         * Axes to move along; default: the flattened tensor.
         *
         * @param axes the value
         * @return these options
         */
        public RollOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }
    }

    /**
     * The op roll: y[(i + shift) mod n] = x[i] on each of <code>axes</code>; without <code>axes</code>, on the
     * flattened tensor.
     *
     * <p>Give one shift for each axis, or one shift without <code>axes</code>. Negative shifts move entries towards the
     * front.
     *
     * <p>Gradient: g, rolled back.
     *
     * <p>This node is the operand x.
     *
     * @param shifts distance to move, for each axis
     * @return the node
     */
    public Node roll(long... shifts) {
        return append("roll", new Attrs().with("shifts", shifts), operands());
    }

    /**
     * The op roll: y[(i + shift) mod n] = x[i] on each of <code>axes</code>; without <code>axes</code>, on the
     * flattened tensor.
     *
     * <p>Give one shift for each axis, or one shift without <code>axes</code>. Negative shifts move entries towards the
     * front.
     *
     * <p>Gradient: g, rolled back.
     *
     * <p>This node is the operand x.
     *
     * @param shifts distance to move, for each axis
     * @param options sets options
     * @return the node
     */
    public Node roll(long[] shifts, Consumer<RollOptions> options) {
        RollOptions given = given(new RollOptions(), options);
        return append("roll", given.attrs.with("shifts", shifts), operands());
    }

    /**
     * The op round: y = x rounded to the nearest whole number, ties to even: 0.5 → 0, 1.5 → 2.
     *
     * @return the node
     */
    public Node round() {
        return append("round", new Attrs(), operands());
    }

    /**
     * The op rsqrt: y = 1 / √x; NaN for x &lt; 0.
     *
     * <p>Gradient: −g · y³ / 2.
     *
     * @return the node
     */
    public Node rsqrt() {
        return append("rsqrt", new Attrs(), operands());
    }

    /** Options of scatterAdd. */
    public static final class ScatterAddOptions {
        private final Attrs attrs = new Attrs();

        private ScatterAddOptions() {}

        /**
         * Axis to index; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public ScatterAddOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Whether negative indices count from the end; −1 is the last; since opset 2; default false.
         *
         * @param fromEnd the value
         * @return these options
         */
        public ScatterAddOptions fromEnd(boolean fromEnd) {
            attrs.with("from_end", fromEnd);
            return this;
        }
    }

    /**
     * The op scatter_add: y = x, then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0; likewise for the other
     * axes.
     *
     * <p><code>index</code> and <code>updates</code> have the same shape, of x's rank, and may be smaller than x on the
     * other axes. Repeated indices accumulate. This is the adjoint of <code>gather</code>. Indices lie in [0, extent);
     * with <code>from_end</code>, negative ones count from the end. PyTorch: <code>scatter_add</code>, which rejects
     * negative indices. JAX: <code>x.at[…].add</code>, which accepts them and drops updates that are out of range.
     *
     * <p>Gradient: dx = g, d updates = gather(g, index); none for index.
     *
     * <p>This node is the operand x.
     *
     * @param index an operand
     * @param updates an operand
     * @return the node
     */
    public Node scatterAdd(Node index, Node updates) {
        return append("scatter_add", new Attrs(), operands(index, updates));
    }

    /**
     * The op scatter_add: y = x, then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0; likewise for the other
     * axes.
     *
     * <p><code>index</code> and <code>updates</code> have the same shape, of x's rank, and may be smaller than x on the
     * other axes. Repeated indices accumulate. This is the adjoint of <code>gather</code>. Indices lie in [0, extent);
     * with <code>from_end</code>, negative ones count from the end. PyTorch: <code>scatter_add</code>, which rejects
     * negative indices. JAX: <code>x.at[…].add</code>, which accepts them and drops updates that are out of range.
     *
     * <p>Gradient: dx = g, d updates = gather(g, index); none for index.
     *
     * <p>This node is the operand x.
     *
     * @param index an operand
     * @param updates an operand
     * @param options sets options
     * @return the node
     */
    public Node scatterAdd(Node index, Node updates, Consumer<ScatterAddOptions> options) {
        ScatterAddOptions given = given(new ScatterAddOptions(), options);
        return append("scatter_add", given.attrs, operands(index, updates));
    }

    /**
     * The op segment_max: y[s, …] = the largest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is
     * NaN.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
     * equally. An empty segment gives −∞, or the smallest number of an integer dtype. JAX:
     * <code>ops.segment_max</code>. PyTorch: <code>scatter_reduce</code> with amax, whose ties also share the gradient,
     * and in which empty segments keep their old values.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.
     *
     * <p>This node is the operand x.
     *
     * @param segmentIds an operand
     * @param segments number of segments
     * @return the node
     */
    public Node segmentMax(Node segmentIds, long segments) {
        return append("segment_max", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /**
     * The op segment_mean: y[s, …] = the mean of x[i, …] over the rows i with segment_ids[i] = s; NaN for an empty
     * segment.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers give float64;
     * float16 is summed in float32. PyTorch: <code>scatter_reduce</code> with mean. JAX has no equivalent.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx[i, …] = g[segment_ids[i], …] / (number of rows in the segment); none for segment_ids.
     *
     * <p>This node is the operand x.
     *
     * @param segmentIds an operand
     * @param segments number of segments
     * @return the node
     */
    public Node segmentMean(Node segmentIds, long segments) {
        return append("segment_mean", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /**
     * The op segment_min: y[s, …] = the smallest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is
     * NaN.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
     * equally. An empty segment gives ∞, or the largest number of an integer dtype. JAX: <code>ops.segment_min</code>.
     * PyTorch: <code>scatter_reduce</code> with amin, whose ties also share the gradient, and in which empty segments
     * keep their old values.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.
     *
     * <p>This node is the operand x.
     *
     * @param segmentIds an operand
     * @param segments number of segments
     * @return the node
     */
    public Node segmentMin(Node segmentIds, long segments) {
        return append("segment_min", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /**
     * The op segment_prod: y[s, …] = Π x[i, …] over the rows i with segment_ids[i] = s; 1 for an empty segment.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are
     * multiplied in int64, float16 in float32. The gradient is exact for any number of zeros, and so are higher
     * derivatives. JAX: <code>ops.segment_prod</code>, which has no gradient. PyTorch: <code>scatter_reduce</code> with
     * prod.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g[segment_ids[i], …] · (product of the other rows of the segment); none for segment_ids.
     *
     * <p>This node is the operand x.
     *
     * @param segmentIds an operand
     * @param segments number of segments
     * @return the node
     */
    public Node segmentProd(Node segmentIds, long segments) {
        return append("segment_prod", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /**
     * The op segment_sum: y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 for an empty segment.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are summed
     * in int64, float16 in float32.
     *
     * <p>Gradient: dx[i, …] = g[segment_ids[i], …]; none for segment_ids.
     *
     * <p>This node is the operand x.
     *
     * @param segmentIds an operand
     * @param segments number of segments
     * @return the node
     */
    public Node segmentSum(Node segmentIds, long segments) {
        return append("segment_sum", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /** Options of select. */
    public static final class SelectOptions {
        private final Attrs attrs = new Attrs();

        private SelectOptions() {}

        /**
         * Axis to read at one position; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public SelectOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }
    }

    /**
     * The op select: y = x at one <code>index</code> along <code>axis</code>, without that axis: x[index], x[:, index],
     * …
     *
     * <p>A negative index counts from the end. Same as PyTorch's select. To read at many indices, use
     * <code>gather</code>.
     *
     * <p>Gradient: g at the index, 0 elsewhere.
     *
     * <p>This node is the operand x.
     *
     * @param index position to read
     * @return the node
     */
    public Node select(long index) {
        return append("select", new Attrs().with("index", index), operands());
    }

    /**
     * The op select: y = x at one <code>index</code> along <code>axis</code>, without that axis: x[index], x[:, index],
     * …
     *
     * <p>A negative index counts from the end. Same as PyTorch's select. To read at many indices, use
     * <code>gather</code>.
     *
     * <p>Gradient: g at the index, 0 elsewhere.
     *
     * <p>This node is the operand x.
     *
     * @param index position to read
     * @param options sets options
     * @return the node
     */
    public Node select(long index, Consumer<SelectOptions> options) {
        SelectOptions given = given(new SelectOptions(), options);
        return append("select", given.attrs.with("index", index), operands());
    }

    /**
     * The op selu: y = 1.0507… · elu(x, alpha = 1.6732…), which preserves mean 0 and variance 1.
     *
     * <p>G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
     *
     * <p>Gradient: 1.0507… · that of elu.
     *
     * @return the node
     */
    public Node selu() {
        return append("selu", new Attrs(), operands());
    }

    /**
     * The op sigmoid: y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. The same formula holds
     * for complex x.
     *
     * <p>Gradient: g · y · (1 − y).
     *
     * @return the node
     */
    public Node sigmoid() {
        return append("sigmoid", new Attrs(), operands());
    }

    /**
     * The op sign: y = −1, 0 or 1: the sign of x. NaN stays NaN.
     *
     * @return the node
     */
    public Node sign() {
        return append("sign", new Attrs(), operands());
    }

    /**
     * The op silu: y = x · sigmoid x; 0 at −∞.
     *
     * <p>Gradient: g · (s + x · s · (1 − s)), s = sigmoid x.
     *
     * @return the node
     */
    public Node silu() {
        return append("silu", new Attrs(), operands());
    }

    /**
     * The op sin: y = sin x.
     *
     * <p>Gradient: g · cos x.
     *
     * @return the node
     */
    public Node sin() {
        return append("sin", new Attrs(), operands());
    }

    /**
     * The op sinc: y = sin(πx) / πx, and 1 at 0. Exactly 0 at all other whole numbers and at infinity.
     *
     * <p>Accurate to 4 ulp even next to whole numbers, where other libraries lose all digits. At whole numbers other
     * than 0, the derivative is (−1)ˣ / x. NumPy, PyTorch and JAX: <code>sinc</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g · (cos πx − y) / x, and 0 at 0.
     *
     * @return the node
     */
    public Node sinc() {
        return append("sinc", new Attrs(), operands());
    }

    /**
     * The op sinh: y = sinh x.
     *
     * <p>Gradient: g · cosh x.
     *
     * @return the node
     */
    public Node sinh() {
        return append("sinh", new Attrs(), operands());
    }

    /** Options of slice. */
    public static final class SliceOptions {
        private final Attrs attrs = new Attrs();

        private SliceOptions() {}

        /**
         * First position on each axis; default: 0.
         *
         * @param starts the value
         * @return these options
         */
        public SliceOptions starts(long... starts) {
            attrs.with("starts", starts);
            return this;
        }

        /**
         * End position on each axis, not included; default: the extent.
         *
         * @param stops the value
         * @return these options
         */
        public SliceOptions stops(long... stops) {
            attrs.with("stops", stops);
            return this;
        }

        /**
         * Distance between positions on each axis; default: 1.
         *
         * @param steps the value
         * @return these options
         */
        public SliceOptions steps(long... steps) {
            attrs.with("steps", steps);
            return this;
        }
    }

    /**
     * The op slice: y = x[starts[0]:stops[0]:steps[0], starts[1]:stops[1]:steps[1], …]: one entry for each axis.
     *
     * <p>A list may have fewer entries than x has axes; the remaining axes use the defaults. Bounds are as in NumPy:
     * negative ones count from the end, and bounds beyond an end are moved to that end. Steps are at least 1.
     *
     * <p>Gradient: g at the positions that were read, 0 elsewhere.
     *
     * @return the node
     */
    public Node slice() {
        return append("slice", new Attrs(), operands());
    }

    /**
     * The op slice: y = x[starts[0]:stops[0]:steps[0], starts[1]:stops[1]:steps[1], …]: one entry for each axis.
     *
     * <p>A list may have fewer entries than x has axes; the remaining axes use the defaults. Bounds are as in NumPy:
     * negative ones count from the end, and bounds beyond an end are moved to that end. Steps are at least 1.
     *
     * <p>Gradient: g at the positions that were read, 0 elsewhere.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node slice(Consumer<SliceOptions> options) {
        SliceOptions given = given(new SliceOptions(), options);
        return append("slice", given.attrs, operands());
    }

    /**
     * The op slice_at: y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], where s is the operand <code>starts</code>:
     * int64 [rank].
     *
     * <p>Each start, negative ones included, is moved into [0, extent − size], so that the result always has the same
     * shape. JAX: <code>lax.dynamic_slice</code>, which first counts negative starts from the end. PyTorch: x.narrow,
     * which takes a start on one axis.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g in the box, 0 elsewhere; none for starts.
     *
     * <p>This node is the operand x.
     *
     * @param starts an operand
     * @param sizes extents of the box, one for each axis
     * @return the node
     */
    public Node sliceAt(Node starts, long... sizes) {
        return append("slice_at", new Attrs().with("sizes", sizes), operands(starts));
    }

    /**
     * The op slogdet: sign, log|det x| of matrices on the last two axes: [batch…, n, n] → [batch…] for both; det x =
     * sign · exp(log).
     *
     * <p>The logarithm does not overflow or underflow where the determinant does. A singular matrix has sign 0 and
     * logarithm −∞, and its gradient is NaN, as is that of the inverse; the other matrices of the batch are unaffected.
     * The sign has no gradient. For a complex matrix, the sign is complex, det x / |det x|, and the logarithm is real.
     * Integers give float64; float16 is computed in a wider float and rounded once.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
     *
     * @return the node
     */
    public Node slogdet() {
        return append("slogdet", new Attrs(), operands());
    }

    /** Options of softmax. */
    public static final class SoftmaxOptions {
        private final Attrs attrs = new Attrs();

        private SoftmaxOptions() {}

        /**
         * Axis to normalise along; default -1.
         *
         * @param axis the value
         * @return these options
         */
        public SoftmaxOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }
    }

    /**
     * The op softmax: y = exp(x) / Σ exp(x) along <code>axis</code>, of x's shape; stable: computed from x − max x.
     * Integers give float64.
     *
     * <p>A row that contains only −inf gives NaN, as 0 / 0.
     *
     * <p>Gradient: y · (g − Σ g·y), with the sum along the axis.
     *
     * @return the node
     */
    public Node softmax() {
        return append("softmax", new Attrs(), operands());
    }

    /**
     * The op softmax: y = exp(x) / Σ exp(x) along <code>axis</code>, of x's shape; stable: computed from x − max x.
     * Integers give float64.
     *
     * <p>A row that contains only −inf gives NaN, as 0 / 0.
     *
     * <p>Gradient: y · (g − Σ g·y), with the sum along the axis.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node softmax(Consumer<SoftmaxOptions> options) {
        SoftmaxOptions given = given(new SoftmaxOptions(), options);
        return append("softmax", given.attrs, operands());
    }

    /**
     * The op softplus: y = ln(1 + eˣ).
     *
     * <p>Gradient: g · sigmoid x.
     *
     * @return the node
     */
    public Node softplus() {
        return append("softplus", new Attrs(), operands());
    }

    /**
     * The op solve: y such that a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices
     * broadcast.
     *
     * <p>b holds vectors if it is 1-d, as in NumPy 2, or if it has a's shape without the last axis and its last two
     * axes cannot be matrices of n rows; otherwise it holds matrices. If a is singular, y is NaN, or very large if
     * rounding hides the singularity; the other systems of the batch are unaffected. Integers give float64; float16 is
     * computed in a wider float and rounded once.
     *
     * <p>M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
     * (2008).
     *
     * <p>Gradient: db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node solve(Node b) {
        return append("solve", new Attrs(), operands(b));
    }

    /**
     * The op sort: y = x sorted in ascending order along an axis; equal entries keep their order, NaN comes last.
     *
     * <p>Gradient: g, moved back to the original positions.
     *
     * <p>This node is the operand x.
     *
     * @param axis axis to sort along
     * @return the node
     */
    public Node sort(long axis) {
        return append("sort", new Attrs().with("axis", axis), operands());
    }

    /** Options of split. */
    public static final class SplitOptions {
        private final Attrs attrs = new Attrs();

        private SplitOptions() {}

        /**
         * Axis to split; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public SplitOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }
    }

    /**
     * The op split: y0, y1, … = x split along <code>axis</code> into parts of <code>sizes</code>, which add up to the
     * extent; a part may be empty.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: the parts' cotangents, joined; zeros for parts that are not read.
     *
     * <p>This node is the operand x.
     *
     * @param sizes extents of the parts on the axis
     * @return the node
     */
    public Node split(long... sizes) {
        return append("split", new Attrs().with("sizes", sizes), operands());
    }

    /**
     * The op split: y0, y1, … = x split along <code>axis</code> into parts of <code>sizes</code>, which add up to the
     * extent; a part may be empty.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: the parts' cotangents, joined; zeros for parts that are not read.
     *
     * <p>This node is the operand x.
     *
     * @param sizes extents of the parts on the axis
     * @param options sets options
     * @return the node
     */
    public Node split(long[] sizes, Consumer<SplitOptions> options) {
        SplitOptions given = given(new SplitOptions(), options);
        return append("split", given.attrs.with("sizes", sizes), operands());
    }

    /**
     * The op sqrt: y = √x; NaN for x &lt; 0. At 0 the derivative is infinite.
     *
     * <p>For a complex x, y is the root with Re y ≥ 0. The branch cut is the negative real axis; on it, the sign of the
     * imaginary zero selects the side for value and gradient, as in PyTorch. JAX uses the derivative of one side for
     * both.
     *
     * <p>Gradient: g / 2y.
     *
     * @return the node
     */
    public Node sqrt() {
        return append("sqrt", new Attrs(), operands());
    }

    /**
     * The op square: y = x².
     *
     * <p>Gradient: g · 2x.
     *
     * @return the node
     */
    public Node square() {
        return append("square", new Attrs(), operands());
    }

    /**
     * The op squeeze: y = x without <code>axes</code>, each of which must have extent 1; by default, without all axes
     * of extent 1.
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>This node is the operand x.
     *
     * @param axes axes of extent 1 to remove; default: all of them
     * @return the node
     */
    public Node squeeze(long... axes) {
        return append("squeeze", new Attrs().with("axes", axes), operands());
    }

    /** Options of stft. */
    public static final class StftOptions {
        private final Attrs attrs = new Attrs();

        private StftOptions() {}

        /**
         * One number: points of each transform; default: the window's length.
         *
         * @param sizes the value
         * @return these options
         */
        public StftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }
    }

    /**
     * The op stft: y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n /
     * 2⌋ + 1].
     *
     * <p>Applies <code>rfft</code> to each part of x that the window [w] covers, with n = w points unless
     * <code>sizes</code> states another number. x is not padded: to get frames around its ends, <code>pad</code> it
     * first. TensorFlow: <code>signal.stft</code>. PyTorch and SciPy: <code>stft</code>, with the last two axes
     * swapped, and with padding by default. NumPy and JAX: frames and <code>rfft</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of rfft, times the window, summed where frames overlap.
     *
     * <p>This node is the operand x.
     *
     * @param window an operand
     * @param stride one number: distance between the starts of adjacent frames
     * @return the node
     */
    public Node stft(Node window, long... stride) {
        return append("stft", new Attrs().with("stride", stride), operands(window));
    }

    /**
     * The op stft: y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n /
     * 2⌋ + 1].
     *
     * <p>Applies <code>rfft</code> to each part of x that the window [w] covers, with n = w points unless
     * <code>sizes</code> states another number. x is not padded: to get frames around its ends, <code>pad</code> it
     * first. TensorFlow: <code>signal.stft</code>. PyTorch and SciPy: <code>stft</code>, with the last two axes
     * swapped, and with padding by default. NumPy and JAX: frames and <code>rfft</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of rfft, times the window, summed where frames overlap.
     *
     * <p>This node is the operand x.
     *
     * @param window an operand
     * @param stride one number: distance between the starts of adjacent frames
     * @param options sets options
     * @return the node
     */
    public Node stft(Node window, long[] stride, Consumer<StftOptions> options) {
        StftOptions given = given(new StftOptions(), options);
        return append("stft", given.attrs.with("stride", stride), operands(window));
    }

    /**
     * The op stop_gradient: y = x, treated as a constant in differentiation.
     *
     * @return the node
     */
    public Node stopGradient() {
        return append("stop_gradient", new Attrs(), operands());
    }

    /**
     * The op struct_field: One field of a record that is stored as one tensor.
     *
     * <p>The leading axis is split into <code>total_fields</code> equal parts, and y is the part
     * <code>field_index</code>; the axis remains.
     *
     * <p>Gradient: g in that part, 0 in the others.
     *
     * <p>This node is the operand x.
     *
     * @param fieldIndex position of the field, from 0
     * @param totalFields number of fields in the record
     * @return the node
     */
    public Node structField(long fieldIndex, long totalFields) {
        return append("struct_field", new Attrs().with("field_index", fieldIndex).with("total_fields", totalFields), operands());
    }

    /**
     * The op sub: y = a − b, elementwise, with NumPy broadcasting.
     *
     * <p>Gradient: da = g, db = −g.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node sub(Node b) {
        return append("sub", new Attrs(), operands(b));
    }

    /**
     * The op sub_scalar: y = x − scalar.
     *
     * <p>Gradient: g.
     *
     * <p>This node is the operand x.
     *
     * @param scalar constant operand
     * @return the node
     */
    public Node subScalar(double scalar) {
        return append("sub_scalar", new Attrs().with("scalar", scalar), operands());
    }

    /** Options of sum. */
    public static final class SumOptions {
        private final Attrs attrs = new Attrs();

        private SumOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public SumOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public SumOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }
    }

    /**
     * The op sum: y = Σ x over axes. Integers and bool are summed in int64, float16 in float32.
     *
     * <p>Gradient: g, broadcast back over the axes.
     *
     * @return the node
     */
    public Node sum() {
        return append("sum", new Attrs(), operands());
    }

    /**
     * The op sum: y = Σ x over axes. Integers and bool are summed in int64, float16 in float32.
     *
     * <p>Gradient: g, broadcast back over the axes.
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node sum(Consumer<SumOptions> options) {
        SumOptions given = given(new SumOptions(), options);
        return append("sum", given.attrs, operands());
    }

    /** Options of svd. */
    public static final class SvdOptions {
        private final Attrs attrs = new Attrs();

        private SvdOptions() {}

        /**
         * Gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces matter; one of nan,
         * whole; default nan.
         *
         * @param degenerate the value
         * @return these options
         */
        public SvdOptions degenerate(String degenerate) {
            attrs.with("degenerate", degenerate);
            return this;
        }
    }

    /**
     * The op svd: u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal;
     * reduced form.
     *
     * <p>x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). If you read only s,
     * vectors are not computed. The gradient of s alone is valid at equal values, too, if your function treats these
     * alike.
     *
     * <p>LAPACK chooses the signs, or for complex vectors the phases, of each column of u together with the row of vh.
     * Use u and vh only in functions that do not depend on them.
     *
     * <p>Singular values closer than 16 n ε ‖x‖, with n the larger extent, count as equal, and smaller ones count as 0.
     * A value of 0 gets no gradient, like <code>abs</code> at 0. For a matrix with equal or zero values, the gradient
     * of a function of u or vh is NaN. If <code>degenerate</code> is whole, such pairs are left out instead. That is
     * correct if the function depends on whole spaces of vectors only, as a projector and u vh do, and wrong otherwise.
     * Second derivatives are NaN if a pair was left out, and also for s alone if values are equal.
     *
     * <p>A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the
     * batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
     *
     * <p>PyTorch: <code>linalg.svd</code> with full_matrices false. JAX: <code>linalg.svd</code>. At a 0, both use
     * whichever vectors LAPACK returned. J. Townsend, Differentiating the singular value decomposition (2016), with 1 /
     * (sⱼ² − sᵢ²) in its partial fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659 (2019), on phases.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, plus (1 − u uᴴ) ḡu s⁻¹ vh and u s⁻¹ ḡvh (1 − v
     * vᴴ); P, Q = uᴴ ḡu, vh ḡvhᴴ minus their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
     *
     * @return the node
     */
    public Node svd() {
        return append("svd", new Attrs(), operands());
    }

    /**
     * The op svd: u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal;
     * reduced form.
     *
     * <p>x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). If you read only s,
     * vectors are not computed. The gradient of s alone is valid at equal values, too, if your function treats these
     * alike.
     *
     * <p>LAPACK chooses the signs, or for complex vectors the phases, of each column of u together with the row of vh.
     * Use u and vh only in functions that do not depend on them.
     *
     * <p>Singular values closer than 16 n ε ‖x‖, with n the larger extent, count as equal, and smaller ones count as 0.
     * A value of 0 gets no gradient, like <code>abs</code> at 0. For a matrix with equal or zero values, the gradient
     * of a function of u or vh is NaN. If <code>degenerate</code> is whole, such pairs are left out instead. That is
     * correct if the function depends on whole spaces of vectors only, as a projector and u vh do, and wrong otherwise.
     * Second derivatives are NaN if a pair was left out, and also for s alone if values are equal.
     *
     * <p>A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the
     * batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
     *
     * <p>PyTorch: <code>linalg.svd</code> with full_matrices false. JAX: <code>linalg.svd</code>. At a 0, both use
     * whichever vectors LAPACK returned. J. Townsend, Differentiating the singular value decomposition (2016), with 1 /
     * (sⱼ² − sᵢ²) in its partial fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659 (2019), on phases.
     *
     * <p>Since opset 2.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, plus (1 − u uᴴ) ḡu s⁻¹ vh and u s⁻¹ ḡvh (1 − v
     * vᴴ); P, Q = uᴴ ḡu, vh ḡvhᴴ minus their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node svd(Consumer<SvdOptions> options) {
        SvdOptions given = given(new SvdOptions(), options);
        return append("svd", given.attrs, operands());
    }

    /**
     * The op symmetric_function: y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of
     * square matrices.
     *
     * <p>f is applied to the eigenvalues: the square root, its reciprocal, the logarithm or the exponential. The
     * gradient uses divided differences, which have a limit where eigenvalues meet. So it is exact at equal
     * eigenvalues, and so is the second derivative; v f vᵀ written with <code>eigh</code> has no gradient there. A
     * matrix gives NaN if f is not finite at an eigenvalue (such as log at 0 or below), if it contains an infinity or
     * NaN, or if LAPACK does not converge; the other matrices of the batch are unaffected. Integers give float64;
     * float16 is computed in a wider float and rounded once.
     *
     * <p>SciPy: <code>sqrtm</code>, <code>logm</code> and <code>expm</code> of symmetric matrices. PyTorch and JAX have
     * no such function with a gradient at equal eigenvalues, except for exp. N. J. Higham, Functions of Matrices
     * (2008), theorem 3.11 of Daleckii and Krein.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), or f′(wᵢ) if wᵢ = wⱼ.
     *
     * <p>This node is the operand x.
     *
     * @param function function of the eigenvalues; rsqrt is 1 / sqrt; one of sqrt, rsqrt, log, exp
     * @return the node
     */
    public Node symmetricFunction(String function) {
        return append("symmetric_function", new Attrs().with("function", function), operands());
    }

    /** Options of takeAlong. */
    public static final class TakeAlongOptions {
        private final Attrs attrs = new Attrs();

        private TakeAlongOptions() {}

        /**
         * Axis to index; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public TakeAlongOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Whether negative indices count from the end; −1 is the last; since opset 2; default false.
         *
         * @param fromEnd the value
         * @return these options
         */
        public TakeAlongOptions fromEnd(boolean fromEnd) {
            attrs.with("from_end", fromEnd);
            return this;
        }
    }

    /**
     * The op take_along: y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes. Same as NumPy's
     * take_along_axis.
     *
     * <p><code>index</code> has x's rank. On the axis, y has the extent of the index; on the other axes, x and the
     * index broadcast. Indices lie in [0, extent); with <code>from_end</code>, in [−extent, extent), and negative ones
     * count from the end. PyTorch: <code>take_along_dim</code>, which rejects negative indices. JAX:
     * <code>take_along_axis</code>, which accepts them.
     *
     * <p>Gradient: g, added where x was read: repeated indices accumulate; none for index.
     *
     * <p>This node is the operand x.
     *
     * @param index an operand
     * @return the node
     */
    public Node takeAlong(Node index) {
        return append("take_along", new Attrs(), operands(index));
    }

    /**
     * The op take_along: y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes. Same as NumPy's
     * take_along_axis.
     *
     * <p><code>index</code> has x's rank. On the axis, y has the extent of the index; on the other axes, x and the
     * index broadcast. Indices lie in [0, extent); with <code>from_end</code>, in [−extent, extent), and negative ones
     * count from the end. PyTorch: <code>take_along_dim</code>, which rejects negative indices. JAX:
     * <code>take_along_axis</code>, which accepts them.
     *
     * <p>Gradient: g, added where x was read: repeated indices accumulate; none for index.
     *
     * <p>This node is the operand x.
     *
     * @param index an operand
     * @param options sets options
     * @return the node
     */
    public Node takeAlong(Node index, Consumer<TakeAlongOptions> options) {
        TakeAlongOptions given = given(new TakeAlongOptions(), options);
        return append("take_along", given.attrs, operands(index));
    }

    /**
     * The op tan: y = tan x.
     *
     * <p>Gradient: g · (1 + y²).
     *
     * @return the node
     */
    public Node tan() {
        return append("tan", new Attrs(), operands());
    }

    /**
     * The op tanh: y = tanh x.
     *
     * <p>Gradient: g · (1 − y²).
     *
     * @return the node
     */
    public Node tanh() {
        return append("tanh", new Attrs(), operands());
    }

    /**
     * The op tile: y = x repeated <code>repeats</code> times along each axis.
     *
     * <p>As in NumPy, the shorter of shape and repeats is padded with leading ones.
     *
     * <p>Gradient: g, summed over the repetitions.
     *
     * <p>This node is the operand x.
     *
     * @param repeats number of repetitions along each axis
     * @return the node
     */
    public Node tile(long... repeats) {
        return append("tile", new Attrs().with("repeats", repeats), operands());
    }

    /** Options of topk. */
    public static final class TopkOptions {
        private final Attrs attrs = new Attrs();

        private TopkOptions() {}

        /**
         * Axis to search; default 0.
         *
         * @param axis the value
         * @return these options
         */
        public TopkOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }
    }

    /**
     * The op topk: values, indices = the k largest entries of x along <code>axis</code>, largest first, and their int64
     * positions.
     *
     * <p>Among equal entries, the one with the lowest index comes first; NaN counts as largest.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: the cotangent of the values, moved back to the original positions; none for indices.
     *
     * <p>This node is the operand x.
     *
     * @param k number of entries; at most the axis's extent
     * @return the node
     */
    public Node topk(long k) {
        return append("topk", new Attrs().with("k", k), operands());
    }

    /**
     * The op topk: values, indices = the k largest entries of x along <code>axis</code>, largest first, and their int64
     * positions.
     *
     * <p>Among equal entries, the one with the lowest index comes first; NaN counts as largest.
     *
     * <p>The op has several results. Read each with getOutput.
     *
     * <p>Gradient: the cotangent of the values, moved back to the original positions; none for indices.
     *
     * <p>This node is the operand x.
     *
     * @param k number of entries; at most the axis's extent
     * @param options sets options
     * @return the node
     */
    public Node topk(long k, Consumer<TopkOptions> options) {
        TopkOptions given = given(new TopkOptions(), options);
        return append("topk", given.attrs.with("k", k), operands());
    }

    /**
     * The op transpose: y = x with its axes permuted.
     *
     * <p>y's axis i is x's axis axes[i]. Without <code>axes</code>, the last two axes are swapped (born reverses all
     * axes: for that, pass <code>axes</code>). If x does not have rank 2, two entries swap those two axes (minima).
     *
     * <p>Gradient: g, permuted back.
     *
     * <p>This node is the operand x.
     *
     * @param axes permutation, or two axes to swap; default: the last two
     * @return the node
     */
    public Node transpose(long... axes) {
        return append("transpose", new Attrs().with("axes", axes), operands());
    }

    /** Options of triangularSolve. */
    public static final class TriangularSolveOptions {
        private final Attrs attrs = new Attrs();

        private TriangularSolveOptions() {}

        /**
         * Whether to read the lower triangle of a; false: the upper one; default true.
         *
         * @param lower the value
         * @return these options
         */
        public TriangularSolveOptions lower(boolean lower) {
            attrs.with("lower", lower);
            return this;
        }

        /**
         * Whether to solve with the triangle's transpose; default false.
         *
         * @param transpose the value
         * @return these options
         */
        public TriangularSolveOptions transpose(boolean transpose) {
            attrs.with("transpose", transpose);
            return this;
        }
    }

    /**
     * The op triangular_solve: y such that t y = b, or tᵀ y = b with <code>transpose</code>; t is the lower (or upper)
     * triangle of a, with the diagonal.
     *
     * <p>a [batch…, n, n]: the other triangle is ignored, whatever it contains. b [n], [batch…, n] or [batch…, n, m],
     * read as in <code>solve</code>. Batch axes broadcast. If the diagonal contains a 0, y is infinite or NaN. Integers
     * are computed in float64, float16 in float32.
     *
     * <p>M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
     * (2008).
     *
     * <p>Gradient: db = t⁻ᴴ g, da = the triangle of −(db yᴴ); with transpose, db = (conj t)⁻¹ g, da that of −(conj y
     * dbᵀ).
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node triangularSolve(Node b) {
        return append("triangular_solve", new Attrs(), operands(b));
    }

    /**
     * The op triangular_solve: y such that t y = b, or tᵀ y = b with <code>transpose</code>; t is the lower (or upper)
     * triangle of a, with the diagonal.
     *
     * <p>a [batch…, n, n]: the other triangle is ignored, whatever it contains. b [n], [batch…, n] or [batch…, n, m],
     * read as in <code>solve</code>. Batch axes broadcast. If the diagonal contains a 0, y is infinite or NaN. Integers
     * are computed in float64, float16 in float32.
     *
     * <p>M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
     * (2008).
     *
     * <p>Gradient: db = t⁻ᴴ g, da = the triangle of −(db yᴴ); with transpose, db = (conj t)⁻¹ g, da that of −(conj y
     * dbᵀ).
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @param options sets options
     * @return the node
     */
    public Node triangularSolve(Node b, Consumer<TriangularSolveOptions> options) {
        TriangularSolveOptions given = given(new TriangularSolveOptions(), options);
        return append("triangular_solve", given.attrs, operands(b));
    }

    /** Options of tril. */
    public static final class TrilOptions {
        private final Attrs attrs = new Attrs();

        private TrilOptions() {}

        /**
         * Diagonal: 0 is the main one, positive above it, negative below it; default 0.
         *
         * @param offset the value
         * @return these options
         */
        public TrilOptions offset(long offset) {
            attrs.with("offset", offset);
            return this;
        }
    }

    /**
     * The op tril: y = x on and below a diagonal of the last two axes, 0 above: y[…, i, j] = x[…, i, j] where j − i ≤
     * offset.
     *
     * <p>Gradient: tril(g).
     *
     * @return the node
     */
    public Node tril() {
        return append("tril", new Attrs(), operands());
    }

    /**
     * The op tril: y = x on and below a diagonal of the last two axes, 0 above: y[…, i, j] = x[…, i, j] where j − i ≤
     * offset.
     *
     * <p>Gradient: tril(g).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node tril(Consumer<TrilOptions> options) {
        TrilOptions given = given(new TrilOptions(), options);
        return append("tril", given.attrs, operands());
    }

    /** Options of triu. */
    public static final class TriuOptions {
        private final Attrs attrs = new Attrs();

        private TriuOptions() {}

        /**
         * Diagonal: 0 is the main one, positive above it, negative below it; default 0.
         *
         * @param offset the value
         * @return these options
         */
        public TriuOptions offset(long offset) {
            attrs.with("offset", offset);
            return this;
        }
    }

    /**
     * The op triu: y = x on and above a diagonal of the last two axes, 0 below: y[…, i, j] = x[…, i, j] where j − i ≥
     * offset.
     *
     * <p>Gradient: triu(g).
     *
     * @return the node
     */
    public Node triu() {
        return append("triu", new Attrs(), operands());
    }

    /**
     * The op triu: y = x on and above a diagonal of the last two axes, 0 below: y[…, i, j] = x[…, i, j] where j − i ≥
     * offset.
     *
     * <p>Gradient: triu(g).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node triu(Consumer<TriuOptions> options) {
        TriuOptions given = given(new TriuOptions(), options);
        return append("triu", given.attrs, operands());
    }

    /**
     * The op trunc_div: y = a / b rounded towards 0, elementwise with broadcasting: C's /. Integer division by 0 gives
     * 0.
     *
     * <p><code>rem</code> is the remainder. PyTorch: <code>div</code> with rounding_mode trunc. JAX:
     * <code>lax.div</code> of integers, which gives −1 for division by 0.
     *
     * <p>Since opset 2.
     *
     * <p>This node is the operand a.
     *
     * @param b an operand
     * @return the node
     */
    public Node truncDiv(Node b) {
        return append("trunc_div", new Attrs(), operands(b));
    }

    /**
     * The op unsqueeze: y = x with axes of extent 1 inserted; <code>axes</code> are their positions in the result.
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>This node is the operand x.
     *
     * @param axes positions of the new axes in the result; must be given
     * @return the node
     */
    public Node unsqueeze(long... axes) {
        return append("unsqueeze", new Attrs().with("axes", axes), operands());
    }

    /**
     * The op update_slice: y = x with the box that begins at <code>starts</code>, one entry for each axis, replaced by
     * <code>update</code>.
     *
     * <p>The box has the shape of <code>update</code>. A negative start counts from the end, as in slice. A box that
     * extends beyond x is an error; it is not moved. The result has the common dtype of x and update.
     *
     * <p>Gradient: dx = g, 0 in the box; d update = g in the box.
     *
     * <p>This node is the operand x.
     *
     * @param update an operand
     * @param starts first position of the update on each axis
     * @return the node
     */
    public Node updateSlice(Node update, long... starts) {
        return append("update_slice", new Attrs().with("starts", starts), operands(update));
    }

    /**
     * The op update_slice_at: y = x with the box that begins at <code>starts</code> replaced by <code>updates</code>;
     * <code>starts</code> is an operand, int64 [rank].
     *
     * <p>The box has the shape of <code>updates</code>. Each start, negative ones included, is moved into [0, extent −
     * size], so that the box fits into x. The result has the common dtype of x and updates. JAX:
     * <code>lax.dynamic_update_slice</code>, which first counts negative starts from the end. PyTorch:
     * <code>slice_scatter</code>, which takes a start on one axis, as a number.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, 0 in the box; d updates = g in the box; none for starts.
     *
     * <p>This node is the operand x.
     *
     * @param updates an operand
     * @param starts an operand
     * @return the node
     */
    public Node updateSliceAt(Node updates, Node starts) {
        return append("update_slice_at", new Attrs(), operands(updates, starts));
    }

    /** Options of var. */
    public static final class VarOptions {
        private final Attrs attrs = new Attrs();

        private VarOptions() {}

        /**
         * Axes to reduce; default: all.
         *
         * @param axes the value
         * @return these options
         */
        public VarOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Whether to keep the reduced axes, with extent 1; default false.
         *
         * @param keepdims the value
         * @return these options
         */
        public VarOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }

        /**
         * Number subtracted from n; 1 for the unbiased estimate; default 0.
         *
         * @param ddof the value
         * @return these options
         */
        public VarOptions ddof(long ddof) {
            attrs.with("ddof", ddof);
            return this;
        }
    }

    /**
     * The op var: y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.
     *
     * <p>Computed in two passes, the mean first, so that a large mean costs no digits. If n ≤ ddof, the division is by
     * zero as in NumPy: the result is NaN or infinity.
     *
     * <p>Gradient: g · 2 (x − mean x) / (n − ddof).
     *
     * @return the node
     */
    public Node var() {
        return append("var", new Attrs(), operands());
    }

    /**
     * The op var: y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.
     *
     * <p>Computed in two passes, the mean first, so that a large mean costs no digits. If n ≤ ddof, the division is by
     * zero as in NumPy: the result is NaN or infinity.
     *
     * <p>Gradient: g · 2 (x − mean x) / (n − ddof).
     *
     * <p>This node is the operand x.
     *
     * @param options sets options
     * @return the node
     */
    public Node var(Consumer<VarOptions> options) {
        VarOptions given = given(new VarOptions(), options);
        return append("var", given.attrs, operands());
    }

    /**
     * The op where: y = on_true where cond is true, else on_false; all three broadcast. Nonzero numbers in cond are
     * true.
     *
     * <p>Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch
     * contains.
     *
     * <p>Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
     *
     * <p>This node is the operand cond.
     *
     * @param onTrue an operand
     * @param onFalse an operand
     * @return the node
     */
    public Node where(Node onTrue, Node onFalse) {
        return append("where", new Attrs(), operands(onTrue, onFalse));
    }

    /**
     * The op xlog1py: y = x · log(1 + y), with broadcasting, accurate for small y; 0 where x = 0, unless y is NaN.
     *
     * <p>Same as in SciPy and PyTorch (<code>special.xlog1py</code>); JAX gives 0 for NaN, too. The derivative with
     * respect to x is log(1 + y): −∞ where y = −1, and NaN where y &lt; −1. The derivative with respect to y is x / (1
     * + y), and 0 where x = 0 and y = −1.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g · log(1 + y); dy = g · x / (1 + y), and 0 where x = 0 and y = −1.
     *
     * <p>This node is the operand x.
     *
     * @param y an operand
     * @return the node
     */
    public Node xlog1py(Node y) {
        return append("xlog1py", new Attrs(), operands(y));
    }

    /**
     * The op xlogy: y = x · log y, with broadcasting; 0 where x = 0, unless y is NaN.
     *
     * <p>Same as in SciPy and PyTorch; JAX gives 0 for NaN, too. The derivative with respect to x is log y: −∞ where y
     * = 0, so that of xlogy(x, x) at 0 is, too. Where x = 0 and y &lt; 0 it is NaN, as in JAX (in PyTorch it is 0). The
     * derivative with respect to y is x / y, and 0 where both are 0.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g · log y; dy = g · x / y, and 0 where x = y = 0.
     *
     * <p>This node is the operand x.
     *
     * @param y an operand
     * @return the node
     */
    public Node xlogy(Node y) {
        return append("xlogy", new Attrs(), operands(y));
    }

    /**
     * The op zeta: y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, with broadcasting, for s &gt; 1: the Hurwitz zeta function.
     *
     * <p>∞ at s = 1 and at q = 0, −1, −2, …; NaN for s &lt; 1, and for q &lt; 0 if s is not a whole number. For q &gt;
     * 0 accurate to 8 ulp (on NumPy, it is SciPy's function); for q &lt; 0 as accurate as <code>polygamma</code>.
     * Derivatives exist to any order. With respect to q, they are as accurate as y. With respect to s, for which
     * PyTorch and JAX have none, they are accurate to 1e-12 of the terms that they sum. With respect to s and then q,
     * they are accurate to 1 ulp / (s − 1). SciPy and PyTorch: <code>special.zeta</code>. JAX: <code>zeta</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
     *
     * <p>This node is the operand s.
     *
     * @param q an operand
     * @return the node
     */
    public Node zeta(Node q) {
        return append("zeta", new Attrs(), operands(q));
    }
}
