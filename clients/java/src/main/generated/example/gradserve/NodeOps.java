// Written by `python -m clients.ops` from the registry of ops: edit that.
package example.gradserve;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;

/** The ops that have a first operand, as methods of it. */
public abstract sealed class NodeOps permits Node {
    NodeOps() {}

    /** Appends a node. Operands at the end may be null: then they are absent, as attributes are. */
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
     * The op abs: y = |x|, real where x is complex. At 0 the gradient is 0, in every order.
     *
     * <p>Gradient: g · sign x; of a complex x, g · x / |x|.
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
     * <p>As many windows as <code>sizes</code> say, on as many of the last axes. PyTorch's
     * <code>adaptive_avg_pool1d</code>, 2d and 3d; JAX has none.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (elements of the window) to each of these.
     *
     * <p>Of its operands, x is this node.
     *
     * @param sizes how many windows there are on each of the last axes
     * @return the node
     */
    public Node adaptiveAvgPool(long... sizes) {
        return append("adaptive_avg_pool", new Attrs().with("sizes", sizes), operands());
    }

    /**
     * The op adaptive_max_pool: y[…, i] = the largest element of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉;
     * NaN where it holds one.
     *
     * <p>As many windows as <code>sizes</code> say, on as many of the last axes. PyTorch's
     * <code>adaptive_max_pool1d</code>, 2d and 3d; JAX has none.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>Of its operands, x is this node.
     *
     * @param sizes how many windows there are on each of the last axes
     * @return the node
     */
    public Node adaptiveMaxPool(long... sizes) {
        return append("adaptive_max_pool", new Attrs().with("sizes", sizes), operands());
    }

    /**
     * The op add: y = a + b, elementwise, broadcasting as NumPy.
     *
     * <p>Gradient: da = g, db = g.
     *
     * <p>Of its operands, a is this node.
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
     * <p>Of its operands, x is this node.
     *
     * @param scalar the constant
     * @return the node
     */
    public Node addScalar(double scalar) {
        return append("add_scalar", new Attrs().with("scalar", scalar), operands());
    }

    /** What all takes beside what is required. */
    public static final class AllOptions {
        private final Attrs attrs = new Attrs();

        private AllOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public AllOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op all: y = whether all elements over axes are true; a number is true unless it is 0. True over nothing.
     *
     * @return the node
     */
    public Node all() {
        return append("all", new Attrs(), operands());
    }

    /**
     * The op all: y = whether all elements over axes are true; a number is true unless it is 0. True over nothing.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node all(Consumer<AllOptions> options) {
        AllOptions given = given(new AllOptions(), options);
        return append("all", given.attrs, operands());
    }

    /**
     * The op angle: y = the angle of x in [−π, π]: atan2(Im x, Re x); 0 or π for a real x. NaN where a part is NaN.
     *
     * <p>The cut is the negative real axis, and the sign of the imaginary zero says from which side it is seen (C99's
     * carg). At 0 the gradient is 0, as in PyTorch; JAX's is NaN.
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

    /** What any takes beside what is required. */
    public static final class AnyOptions {
        private final Attrs attrs = new Attrs();

        private AnyOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public AnyOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op any: y = whether any element over axes is true; a number is true unless it is 0. False over nothing.
     *
     * @return the node
     */
    public Node any() {
        return append("any", new Attrs(), operands());
    }

    /**
     * The op any: y = whether any element over axes is true; a number is true unless it is 0. False over nothing.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node any(Consumer<AnyOptions> options) {
        AnyOptions given = given(new AnyOptions(), options);
        return append("any", given.attrs, operands());
    }

    /** What argmax takes beside what is required. */
    public static final class ArgmaxOptions {
        private final Attrs attrs = new Attrs();

        private ArgmaxOptions() {}

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op argmax: y = position along <code>axis</code> of the largest element, int64: the first of equal ones, the
     * first NaN before all.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to search
     * @return the node
     */
    public Node argmax(long axis) {
        return append("argmax", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op argmax: y = position along <code>axis</code> of the largest element, int64: the first of equal ones, the
     * first NaN before all.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to search
     * @param options states what is optional
     * @return the node
     */
    public Node argmax(long axis, Consumer<ArgmaxOptions> options) {
        ArgmaxOptions given = given(new ArgmaxOptions(), options);
        return append("argmax", given.attrs.with("axis", axis), operands());
    }

    /** What argmin takes beside what is required. */
    public static final class ArgminOptions {
        private final Attrs attrs = new Attrs();

        private ArgminOptions() {}

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op argmin: y = position along <code>axis</code> of the smallest element, int64: the first of equal ones, the
     * first NaN before all.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to search
     * @return the node
     */
    public Node argmin(long axis) {
        return append("argmin", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op argmin: y = position along <code>axis</code> of the smallest element, int64: the first of equal ones, the
     * first NaN before all.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to search
     * @param options states what is optional
     * @return the node
     */
    public Node argmin(long axis, Consumer<ArgminOptions> options) {
        ArgminOptions given = given(new ArgminOptions(), options);
        return append("argmin", given.attrs.with("axis", axis), operands());
    }

    /**
     * The op argsort: y = the int64 positions that put x in ascending order along an axis; equal entries keep theirs,
     * NaN last.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to sort along
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
     * The op atan2: y = the angle in [−π, π] of the point with abscissa b and ordinate a, broadcasting.
     *
     * <p>At a = b = 0 the value is NumPy's (0 or ±π) and the derivatives are NaN: there are none. At infinity they are
     * 0.
     *
     * <p>Gradient: da = g · b / (a² + b²), db = −g · a / (a² + b²).
     *
     * <p>Of its operands, a is this node.
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

    /** What attention takes beside what is required. */
    public static final class AttentionOptions {
        private final Attrs attrs = new Attrs();
        private Node mask;

        private AttentionOptions() {}

        /**
         * An operand.
         *
         * @param mask a node of the same graph
         * @return these options
         */
        public AttentionOptions mask(Node mask) {
            this.mask = mask;
            return this;
        }

        /**
         * What q kᵀ is multiplied by; absent: 1/√d.
         *
         * @param scale the value
         * @return these options
         */
        public AttentionOptions scale(double scale) {
            attrs.with("scale", scale);
            return this;
        }

        /**
         * Hide key j from query i where j &gt; i; false unless stated.
         *
         * @param causal the value
         * @return these options
         */
        public AttentionOptions causal(boolean causal) {
            attrs.with("causal", causal);
            return this;
        }

        /**
         * Whether each head of k and v serves several of q, on the axis -3; since opset 2; false unless stated.
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
     * The op attention: y = softmax(q kᵀ · scale + mask) v, for each query the mean of the values weighted by how its
     * key fits.
     *
     * <p>q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast.
     * The mask broadcasts to [..., queries, keys]: bool (true = keep) or float (added). <code>causal</code> also hides
     * key j from query i where j &gt; i. A query that is left no key has NaN. Scores of 16 MiB and more that outweigh
     * q, k and v are not held in memory, but for tangents and second derivatives. With <code>grouped</code>, the heads
     * of q, on its axis -3, are a multiple of those of k and v, each of which serves as many, side by side: PyTorch's
     * enable_gqa, and what JAX's dot_product_attention does where there are fewer. A. Vaswani et al., "Attention is all
     * you need" (2017); J. Ainslie et al., "GQA" (2023).
     *
     * <p>Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv =
     * pᵀ g.
     *
     * <p>Of its operands, q is this node.
     *
     * @param k an operand
     * @param v an operand
     * @return the node
     */
    public Node attention(Node k, Node v) {
        return append("attention", new Attrs(), operands(k, v));
    }

    /**
     * The op attention: y = softmax(q kᵀ · scale + mask) v, for each query the mean of the values weighted by how its
     * key fits.
     *
     * <p>q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast.
     * The mask broadcasts to [..., queries, keys]: bool (true = keep) or float (added). <code>causal</code> also hides
     * key j from query i where j &gt; i. A query that is left no key has NaN. Scores of 16 MiB and more that outweigh
     * q, k and v are not held in memory, but for tangents and second derivatives. With <code>grouped</code>, the heads
     * of q, on its axis -3, are a multiple of those of k and v, each of which serves as many, side by side: PyTorch's
     * enable_gqa, and what JAX's dot_product_attention does where there are fewer. A. Vaswani et al., "Attention is all
     * you need" (2017); J. Ainslie et al., "GQA" (2023).
     *
     * <p>Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv =
     * pᵀ g.
     *
     * <p>Of its operands, q is this node.
     *
     * @param k an operand
     * @param v an operand
     * @param mask an operand; null where it is absent
     * @return the node
     */
    public Node attention(Node k, Node v, Node mask) {
        return append("attention", new Attrs(), operands(k, v, mask));
    }

    /**
     * The op attention: y = softmax(q kᵀ · scale + mask) v, for each query the mean of the values weighted by how its
     * key fits.
     *
     * <p>q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast.
     * The mask broadcasts to [..., queries, keys]: bool (true = keep) or float (added). <code>causal</code> also hides
     * key j from query i where j &gt; i. A query that is left no key has NaN. Scores of 16 MiB and more that outweigh
     * q, k and v are not held in memory, but for tangents and second derivatives. With <code>grouped</code>, the heads
     * of q, on its axis -3, are a multiple of those of k and v, each of which serves as many, side by side: PyTorch's
     * enable_gqa, and what JAX's dot_product_attention does where there are fewer. A. Vaswani et al., "Attention is all
     * you need" (2017); J. Ainslie et al., "GQA" (2023).
     *
     * <p>Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv =
     * pᵀ g.
     *
     * <p>Of its operands, q is this node.
     *
     * @param k an operand
     * @param v an operand
     * @param options states what is optional
     * @return the node
     */
    public Node attention(Node k, Node v, Consumer<AttentionOptions> options) {
        AttentionOptions given = given(new AttentionOptions(), options);
        return append("attention", given.attrs, operands(k, v, given.mask));
    }

    /** What avgPool1d takes beside what is required. */
    public static final class AvgPool1dOptions {
        private final Attrs attrs = new Attrs();

        private AvgPool1dOptions() {}

        /**
         * Distance of the windows along each spatial axis; absent: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public AvgPool1dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Added on both sides of each axis, at most half the kernel size; [0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public AvgPool1dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
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
     * <p>Extents as those of max_pool1d. What a window of a <code>ceiling</code> has beyond the padding does not count.
     * PyTorch's <code>avg_pool1d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>; Flax's
     * <code>avg_pool</code>, without a ceiling.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (taps of the window) to each of its elements.
     *
     * <p>Of its operands, x is this node.
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
     * <p>Extents as those of max_pool1d. What a window of a <code>ceiling</code> has beyond the padding does not count.
     * PyTorch's <code>avg_pool1d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>; Flax's
     * <code>avg_pool</code>, without a ceiling.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (taps of the window) to each of its elements.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options states what is optional
     * @return the node
     */
    public Node avgPool1d(long[] kernelSize, Consumer<AvgPool1dOptions> options) {
        AvgPool1dOptions given = given(new AvgPool1dOptions(), options);
        return append("avg_pool1d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** What avgPool2d takes beside what is required. */
    public static final class AvgPool2dOptions {
        private final Attrs attrs = new Attrs();

        private AvgPool2dOptions() {}

        /**
         * Distance of the windows along each spatial axis; absent: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public AvgPool2dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated.
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
     * <p>x [..., h, w]. Integers give float64. As PyTorch's avg_pool2d.
     *
     * <p>Gradient: conv_transpose2d of g / kernel size with ones.
     *
     * <p>Of its operands, x is this node.
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
     * <p>x [..., h, w]. Integers give float64. As PyTorch's avg_pool2d.
     *
     * <p>Gradient: conv_transpose2d of g / kernel size with ones.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options states what is optional
     * @return the node
     */
    public Node avgPool2d(long[] kernelSize, Consumer<AvgPool2dOptions> options) {
        AvgPool2dOptions given = given(new AvgPool2dOptions(), options);
        return append("avg_pool2d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** What avgPool3d takes beside what is required. */
    public static final class AvgPool3dOptions {
        private final Attrs attrs = new Attrs();

        private AvgPool3dOptions() {}

        /**
         * Distance of the windows along each spatial axis; absent: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public AvgPool3dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Added on both sides of each axis, at most half the kernel size; [0, 0, 0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public AvgPool3dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
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
     * <p>Integers give float64. Extents as those of max_pool1d. What a window of a <code>ceiling</code> has beyond the
     * padding does not count. PyTorch's <code>avg_pool3d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>;
     * Flax's <code>avg_pool</code>, without a ceiling.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (taps of the window) to each of its elements.
     *
     * <p>Of its operands, x is this node.
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
     * <p>Integers give float64. Extents as those of max_pool1d. What a window of a <code>ceiling</code> has beyond the
     * padding does not count. PyTorch's <code>avg_pool3d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>;
     * Flax's <code>avg_pool</code>, without a ceiling.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / (taps of the window) to each of its elements.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options states what is optional
     * @return the node
     */
    public Node avgPool3d(long[] kernelSize, Consumer<AvgPool3dOptions> options) {
        AvgPool3dOptions given = given(new AvgPool3dOptions(), options);
        return append("avg_pool3d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** What batchNorm takes beside what is required. */
    public static final class BatchNormOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private BatchNormOptions() {}

        /**
         * An operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public BatchNormOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public BatchNormOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * The axis of the features; 1 unless stated.
         *
         * @param axis the value
         * @return these options
         */
        public BatchNormOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Added to the variance or mean square; positive; 1e-05 unless stated.
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
     * The op batch_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each feature over all
     * other axes.
     *
     * <p><code>axis</code> is that of the features; weight and bias have its extent. These are the statistics of the
     * operand (as in training), with n in the denominator. S. Ioffe, C. Szegedy, "Batch normalization" (2015). CJC
     * normalises the whole tensor: reshape it to [n, 1].
     *
     * <p>Gradient: as of layer_norm, over all axes but the features'.
     *
     * @return the node
     */
    public Node batchNorm() {
        return append("batch_norm", new Attrs(), operands());
    }

    /**
     * The op batch_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each feature over all
     * other axes.
     *
     * <p><code>axis</code> is that of the features; weight and bias have its extent. These are the statistics of the
     * operand (as in training), with n in the denominator. S. Ioffe, C. Szegedy, "Batch normalization" (2015). CJC
     * normalises the whole tensor: reshape it to [n, 1].
     *
     * <p>Gradient: as of layer_norm, over all axes but the features'.
     *
     * <p>Of its operands, x is this node.
     *
     * @param weight an operand; null where it is absent
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node batchNorm(Node weight, Node bias) {
        return append("batch_norm", new Attrs(), operands(weight, bias));
    }

    /**
     * The op batch_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each feature over all
     * other axes.
     *
     * <p><code>axis</code> is that of the features; weight and bias have its extent. These are the statistics of the
     * operand (as in training), with n in the denominator. S. Ioffe, C. Szegedy, "Batch normalization" (2015). CJC
     * normalises the whole tensor: reshape it to [n, 1].
     *
     * <p>Gradient: as of layer_norm, over all axes but the features'.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node batchNorm(Consumer<BatchNormOptions> options) {
        BatchNormOptions given = given(new BatchNormOptions(), options);
        return append("batch_norm", given.attrs, operands(given.weight, given.bias));
    }

    /** What batchNormGiven takes beside what is required. */
    public static final class BatchNormGivenOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private BatchNormGivenOptions() {}

        /**
         * An operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public BatchNormGivenOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public BatchNormGivenOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * The axis of the features; 1 unless stated.
         *
         * @param axis the value
         * @return these options
         */
        public BatchNormGivenOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Added to the variance or mean square; positive; 1e-05 unless stated.
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
     * The op batch_norm_given: y = (x − mean) / √(variance + eps) · weight + bias, by statistics that are given, as
     * when a network is used.
     *
     * <p><code>axis</code> is that of the features; all other operands have its extent. PyTorch's
     * <code>batch_norm</code> with training false; Flax's <code>BatchNorm</code> with use_running_average, whose
     * features are last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: with r = 1 / √(variance + eps): dx = g · weight · r, and those of all others as the formula says.
     *
     * <p>Of its operands, x is this node.
     *
     * @param mean an operand
     * @param variance an operand
     * @return the node
     */
    public Node batchNormGiven(Node mean, Node variance) {
        return append("batch_norm_given", new Attrs(), operands(mean, variance));
    }

    /**
     * The op batch_norm_given: y = (x − mean) / √(variance + eps) · weight + bias, by statistics that are given, as
     * when a network is used.
     *
     * <p><code>axis</code> is that of the features; all other operands have its extent. PyTorch's
     * <code>batch_norm</code> with training false; Flax's <code>BatchNorm</code> with use_running_average, whose
     * features are last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: with r = 1 / √(variance + eps): dx = g · weight · r, and those of all others as the formula says.
     *
     * <p>Of its operands, x is this node.
     *
     * @param mean an operand
     * @param variance an operand
     * @param weight an operand; null where it is absent
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node batchNormGiven(Node mean, Node variance, Node weight, Node bias) {
        return append("batch_norm_given", new Attrs(), operands(mean, variance, weight, bias));
    }

    /**
     * The op batch_norm_given: y = (x − mean) / √(variance + eps) · weight + bias, by statistics that are given, as
     * when a network is used.
     *
     * <p><code>axis</code> is that of the features; all other operands have its extent. PyTorch's
     * <code>batch_norm</code> with training false; Flax's <code>BatchNorm</code> with use_running_average, whose
     * features are last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: with r = 1 / √(variance + eps): dx = g · weight · r, and those of all others as the formula says.
     *
     * <p>Of its operands, x is this node.
     *
     * @param mean an operand
     * @param variance an operand
     * @param options states what is optional
     * @return the node
     */
    public Node batchNormGiven(Node mean, Node variance, Consumer<BatchNormGivenOptions> options) {
        BatchNormGivenOptions given = given(new BatchNormGivenOptions(), options);
        return append("batch_norm_given", given.attrs, operands(mean, variance, given.weight, given.bias));
    }

    /** What batchNormRunning takes beside what is required. */
    public static final class BatchNormRunningOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private BatchNormRunningOptions() {}

        /**
         * An operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public BatchNormRunningOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public BatchNormRunningOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * The axis of the features; 1 unless stated.
         *
         * @param axis the value
         * @return these options
         */
        public BatchNormRunningOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Added to the variance or mean square; positive; 1e-05 unless stated.
         *
         * @param eps the value
         * @return these options
         */
        public BatchNormRunningOptions eps(double eps) {
            attrs.with("eps", eps);
            return this;
        }

        /**
         * How much of the new statistics the running ones take; 0.1 unless stated.
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
     * The op batch_norm_running: y of <code>batch_norm</code>, and the running mean and variance, moved on: (1 −
     * momentum) · old + momentum · this batch's.
     *
     * <p><code>axis</code> is that of the features; all other operands have its extent. The variance that is moved to
     * has n − 1 in the denominator, that of y has n. Three results, read through get_output. PyTorch's
     * <code>batch_norm</code> with training true, whose running statistics are written in place, and carry no gradient;
     * Flax's <code>BatchNorm</code>, whose momentum is 1 − this one, and whose running variance has n.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: as of batch_norm; of the running statistics as their formula.
     *
     * <p>Of its operands, x is this node.
     *
     * @param mean an operand
     * @param variance an operand
     * @return the node
     */
    public Node batchNormRunning(Node mean, Node variance) {
        return append("batch_norm_running", new Attrs(), operands(mean, variance));
    }

    /**
     * The op batch_norm_running: y of <code>batch_norm</code>, and the running mean and variance, moved on: (1 −
     * momentum) · old + momentum · this batch's.
     *
     * <p><code>axis</code> is that of the features; all other operands have its extent. The variance that is moved to
     * has n − 1 in the denominator, that of y has n. Three results, read through get_output. PyTorch's
     * <code>batch_norm</code> with training true, whose running statistics are written in place, and carry no gradient;
     * Flax's <code>BatchNorm</code>, whose momentum is 1 − this one, and whose running variance has n.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: as of batch_norm; of the running statistics as their formula.
     *
     * <p>Of its operands, x is this node.
     *
     * @param mean an operand
     * @param variance an operand
     * @param weight an operand; null where it is absent
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node batchNormRunning(Node mean, Node variance, Node weight, Node bias) {
        return append("batch_norm_running", new Attrs(), operands(mean, variance, weight, bias));
    }

    /**
     * The op batch_norm_running: y of <code>batch_norm</code>, and the running mean and variance, moved on: (1 −
     * momentum) · old + momentum · this batch's.
     *
     * <p><code>axis</code> is that of the features; all other operands have its extent. The variance that is moved to
     * has n − 1 in the denominator, that of y has n. Three results, read through get_output. PyTorch's
     * <code>batch_norm</code> with training true, whose running statistics are written in place, and carry no gradient;
     * Flax's <code>BatchNorm</code>, whose momentum is 1 − this one, and whose running variance has n.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: as of batch_norm; of the running statistics as their formula.
     *
     * <p>Of its operands, x is this node.
     *
     * @param mean an operand
     * @param variance an operand
     * @param options states what is optional
     * @return the node
     */
    public Node batchNormRunning(Node mean, Node variance, Consumer<BatchNormRunningOptions> options) {
        BatchNormRunningOptions given = given(new BatchNormRunningOptions(), options);
        return append("batch_norm_running", given.attrs, operands(mean, variance, given.weight, given.bias));
    }

    /** What bceWithLogits takes beside what is required. */
    public static final class BceWithLogitsOptions {
        private final Attrs attrs = new Attrs();

        private BceWithLogitsOptions() {}

        /**
         * What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
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
     * The op bce_with_logits: loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise on equal
     * shapes; then the mean.
     *
     * <p>x are logits, y probabilities. Exact in both tails: the logarithm of σ is taken in one step.
     *
     * <p>Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
     *
     * <p>Of its operands, x is this node.
     *
     * @param y an operand
     * @return the node
     */
    public Node bceWithLogits(Node y) {
        return append("bce_with_logits", new Attrs(), operands(y));
    }

    /**
     * The op bce_with_logits: loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise on equal
     * shapes; then the mean.
     *
     * <p>x are logits, y probabilities. Exact in both tails: the logarithm of σ is taken in one step.
     *
     * <p>Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
     *
     * <p>Of its operands, x is this node.
     *
     * @param y an operand
     * @param options states what is optional
     * @return the node
     */
    public Node bceWithLogits(Node y, Consumer<BceWithLogitsOptions> options) {
        BceWithLogitsOptions given = given(new BceWithLogitsOptions(), options);
        return append("bce_with_logits", given.attrs, operands(y));
    }

    /**
     * The op betainc: y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), broadcasting, for 0 ≤ x ≤ 1, and a, b &gt; 0:
     * SciPy's, JAX's.
     *
     * <p>To 256 units, SciPy's own on NumPy. Derivatives by all operands, of any order: by x to 1e-12 of their value,
     * by a and b, of which JAX has none, to 1e-11. PyTorch has no such function.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b by an integral; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @param x an operand
     * @return the node
     */
    public Node betainc(Node b, Node x) {
        return append("betainc", new Attrs(), operands(b, x));
    }

    /**
     * The op betaln: y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, broadcasting. To 10 units of y, or of 1 where |y|
     * is less.
     *
     * <p>Units are those in the last place of a float64, on NumPy. Where an operand is large, <code>lgamma</code> would
     * leave few digits of y, and SciPy's own loses up to 9 of 16. Where an operand is not positive, y is SciPy's; at
     * infinity it is −∞.
     *
     * <p>The derivative by a is as accurate, or, where b &lt; a &lt; 100, to 1e-15 · a / b of its value; and likewise
     * by b.
     *
     * <p>Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node betaln(Node b) {
        return append("betaln", new Attrs(), operands(b));
    }

    /**
     * The op broadcast_to: y = x repeated along new leading axes and along axes of extent 1, to <code>shape</code>, by
     * NumPy's rule.
     *
     * <p>Gradient: g, summed over the axes that were repeated.
     *
     * <p>Of its operands, x is this node.
     *
     * @param shape the result's shape; [] unless stated
     * @return the node
     */
    public Node broadcastTo(long... shape) {
        return append("broadcast_to", new Attrs().with("shape", shape), operands());
    }

    /**
     * The op cast: y = x in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true.
     *
     * <p>float → float is differentiable; through integers and bool there is no path. A real x becomes complex; a
     * complex one never real, of which <code>real</code> says what is meant.
     *
     * <p>Gradient: g, cast back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param dtype the result's dtype
     * @return the node
     */
    public Node cast(DType dtype) {
        return append("cast", new Attrs().with("dtype", dtype), operands());
    }

    /** What cdist takes beside what is required. */
    public static final class CdistOptions {
        private final Attrs attrs = new Attrs();

        private CdistOptions() {}

        /**
         * The exponent; positive; 2.0 unless stated.
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
     * The op cdist: y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance of each row of a from each
     * of b.
     *
     * <p>a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient is
     * 0, and so is that of the gradient. Differences are taken before they are squared, so that no digits are lost:
     * PyTorch's <code>cdist</code> with compute_mode donot_use_mm_for_euclid_dist; JAX has none.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), db likewise, and 0 where y = 0.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node cdist(Node b) {
        return append("cdist", new Attrs(), operands(b));
    }

    /**
     * The op cdist: y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance of each row of a from each
     * of b.
     *
     * <p>a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient is
     * 0, and so is that of the gradient. Differences are taken before they are squared, so that no digits are lost:
     * PyTorch's <code>cdist</code> with compute_mode donot_use_mm_for_euclid_dist; JAX has none.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), db likewise, and 0 where y = 0.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @param options states what is optional
     * @return the node
     */
    public Node cdist(Node b, Consumer<CdistOptions> options) {
        CdistOptions given = given(new CdistOptions(), options);
        return append("cdist", given.attrs, operands(b));
    }

    /**
     * The op ceil: y = ⌈x⌉: up to the next whole number.
     *
     * @return the node
     */
    public Node ceil() {
        return append("ceil", new Attrs(), operands());
    }

    /**
     * The op cholesky: y lower triangular, its diagonal positive, with y yᴴ = (x + xᴴ) / 2, for matrices on the last
     * two axes.
     *
     * <p>x is made symmetric (Hermitian) first, as in JAX: so the gradient is symmetric, and holds along every
     * direction. A matrix that is not positive definite gives a matrix of NaN; the others of its batch are as if it
     * were not there. Integers give float64; float16 is computed in a wider float, and rounded once. I. Murray,
     * Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
     *
     * <p>Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle, half the diagonal.
     *
     * @return the node
     */
    public Node cholesky() {
        return append("cholesky", new Attrs(), operands());
    }

    /** What chunk takes beside what is required. */
    public static final class ChunkOptions {
        private final Attrs attrs = new Attrs();

        private ChunkOptions() {}

        /**
         * The axis that is cut; 0 unless stated.
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
     * The op chunk: y0, y1, … = x cut along <code>axis</code> into at most <code>chunks</code> parts of extent ⌈n /
     * chunks⌉, the last of what is left.
     *
     * <p>As PyTorch: there may be fewer parts than asked for (6 entries in 4 chunks: 2, 2, 2); an empty axis gives
     * <code>chunks</code> empty parts. Several results, read through get_output.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: the parts' cotangents, joined; zeros for parts that are not read.
     *
     * <p>Of its operands, x is this node.
     *
     * @param chunks the most parts to cut into
     * @return the node
     */
    public Node chunk(long chunks) {
        return append("chunk", new Attrs().with("chunks", chunks), operands());
    }

    /**
     * The op chunk: y0, y1, … = x cut along <code>axis</code> into at most <code>chunks</code> parts of extent ⌈n /
     * chunks⌉, the last of what is left.
     *
     * <p>As PyTorch: there may be fewer parts than asked for (6 entries in 4 chunks: 2, 2, 2); an empty axis gives
     * <code>chunks</code> empty parts. Several results, read through get_output.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: the parts' cotangents, joined; zeros for parts that are not read.
     *
     * <p>Of its operands, x is this node.
     *
     * @param chunks the most parts to cut into
     * @param options states what is optional
     * @return the node
     */
    public Node chunk(long chunks, Consumer<ChunkOptions> options) {
        ChunkOptions given = given(new ChunkOptions(), options);
        return append("chunk", given.attrs.with("chunks", chunks), operands());
    }

    /** What clamp takes beside what is required. */
    public static final class ClampOptions {
        private final Attrs attrs = new Attrs();

        private ClampOptions() {}

        /**
         * The lower bound; absent: none.
         *
         * @param min the value
         * @return these options
         */
        public ClampOptions min(Number min) {
            attrs.with("min", min);
            return this;
        }

        /**
         * The upper bound; absent: none.
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
     * The op clamp: y = x, but at least min and at most max; either bound may be absent. Where min &gt; max, y is max.
     *
     * <p>NaN stays NaN, and takes the gradient. Integers keep their dtype where it holds the bounds that there are:
     * whole numbers within its range; else they give float64.
     *
     * <p>Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
     *
     * @return the node
     */
    public Node clamp() {
        return append("clamp", new Attrs(), operands());
    }

    /**
     * The op clamp: y = x, but at least min and at most max; either bound may be absent. Where min &gt; max, y is max.
     *
     * <p>NaN stays NaN, and takes the gradient. Integers keep their dtype where it holds the bounds that there are:
     * whole numbers within its range; else they give float64.
     *
     * <p>Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node clamp(Consumer<ClampOptions> options) {
        ClampOptions given = given(new ClampOptions(), options);
        return append("clamp", given.attrs, operands());
    }

    /** What compress takes beside what is required. */
    public static final class CompressOptions {
        private final Attrs attrs = new Attrs();

        private CompressOptions() {}

        /**
         * The axis that the mask is of; 0 unless stated.
         *
         * @param axis the value
         * @return these options
         */
        public CompressOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * What lies behind the count; 0.0 unless stated.
         *
         * @param fill the value
         * @return these options
         */
        public CompressOptions fill(Number fill) {
            attrs.with("fill", fill);
            return this;
        }

        /**
         * An infinity or NaN, in place of <code>fill</code>; of a float dtype; one of inf, -inf, nan.
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
     * The op compress: The entries of x along <code>axis</code> where <code>mask</code> [extent] is true, k of them;
     * and how many there are: int64 [].
     *
     * <p>k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
     * lies <code>fill</code>. Two results, read through get_output. JAX's and NumPy's <code>compress</code>, of which
     * JAX's takes a size and a fill_value, too; PyTorch's x[mask], which has as many entries as there are.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: g to the entries taken; none for mask.
     *
     * <p>Of its operands, x is this node.
     *
     * @param mask an operand
     * @param k how many entries there are to be
     * @return the node
     */
    public Node compress(Node mask, long k) {
        return append("compress", new Attrs().with("k", k), operands(mask));
    }

    /**
     * The op compress: The entries of x along <code>axis</code> where <code>mask</code> [extent] is true, k of them;
     * and how many there are: int64 [].
     *
     * <p>k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
     * lies <code>fill</code>. Two results, read through get_output. JAX's and NumPy's <code>compress</code>, of which
     * JAX's takes a size and a fill_value, too; PyTorch's x[mask], which has as many entries as there are.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: g to the entries taken; none for mask.
     *
     * <p>Of its operands, x is this node.
     *
     * @param mask an operand
     * @param k how many entries there are to be
     * @param options states what is optional
     * @return the node
     */
    public Node compress(Node mask, long k, Consumer<CompressOptions> options) {
        CompressOptions given = given(new CompressOptions(), options);
        return append("compress", given.attrs.with("k", k), operands(mask));
    }

    /**
     * The op cond_number: y = s₀ / sₖ₋₁, the condition in the 2-norm: the largest over the smallest singular value.
     *
     * <p>x [batch…, m, n], y [batch…]. Infinite for a matrix of lower rank, as far as rounding leaves a 0; NaN for one
     * of zeros, or that holds an infinity or NaN. Integers give float64; float16 is computed in float32, and rounded
     * once. PyTorch's, JAX's and NumPy's <code>linalg.cond</code> with p absent.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of svd, whose vectors are those of s₀ and sₖ₋₁: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁).
     *
     * @return the node
     */
    public Node condNumber() {
        return append("cond_number", new Attrs(), operands());
    }

    /**
     * The op conj: y = conj x, the imaginary part negated; a real x itself. PyTorch's, JAX's and NumPy's
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

    /** What conv1d takes beside what is required. */
    public static final class Conv1dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private Conv1dOptions() {}

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public Conv1dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance of the windows along each spatial axis; [1] unless stated.
         *
         * @param stride the value
         * @return these options
         */
        public Conv1dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros put on both sides of each spatial axis; [0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public Conv1dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance of the kernel's taps along each spatial axis; [1] unless stated.
         *
         * @param dilation the value
         * @return these options
         */
        public Conv1dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
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
     * <p>x [n, channels, w], zero outside; kernel [features, channels / groups, kw]; y [n, features, w'] with w' = ⌊(w
     * + 2p − d·(kw − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv1d.
     *
     * <p>Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
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
     * <p>x [n, channels, w], zero outside; kernel [features, channels / groups, kw]; y [n, features, w'] with w' = ⌊(w
     * + 2p − d·(kw − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv1d.
     *
     * <p>Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node conv1d(Node kernel, Node bias) {
        return append("conv1d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv1d: y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.
     *
     * <p>x [n, channels, w], zero outside; kernel [features, channels / groups, kw]; y [n, features, w'] with w' = ⌊(w
     * + 2p − d·(kw − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv1d.
     *
     * <p>Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param options states what is optional
     * @return the node
     */
    public Node conv1d(Node kernel, Consumer<Conv1dOptions> options) {
        Conv1dOptions given = given(new Conv1dOptions(), options);
        return append("conv1d", given.attrs, operands(kernel, given.bias));
    }

    /** What conv2d takes beside what is required. */
    public static final class Conv2dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private Conv2dOptions() {}

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public Conv2dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance of the windows along each spatial axis; [1, 1] unless stated.
         *
         * @param stride the value
         * @return these options
         */
        public Conv2dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros put on both sides of each spatial axis; [0, 0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public Conv2dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance of the kernel's taps along each spatial axis; [1, 1] unless stated.
         *
         * @param dilation the value
         * @return these options
         */
        public Conv2dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
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
     * <p>x [n, channels, h, w], zero outside; kernel [features, channels / groups, kh, kw]; y [n, features, h', w']
     * with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv2d.
     *
     * <p>Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
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
     * <p>x [n, channels, h, w], zero outside; kernel [features, channels / groups, kh, kw]; y [n, features, h', w']
     * with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv2d.
     *
     * <p>Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node conv2d(Node kernel, Node bias) {
        return append("conv2d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv2d: y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a
     * cross-correlation.
     *
     * <p>x [n, channels, h, w], zero outside; kernel [features, channels / groups, kh, kw]; y [n, features, h', w']
     * with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv2d.
     *
     * <p>Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param options states what is optional
     * @return the node
     */
    public Node conv2d(Node kernel, Consumer<Conv2dOptions> options) {
        Conv2dOptions given = given(new Conv2dOptions(), options);
        return append("conv2d", given.attrs, operands(kernel, given.bias));
    }

    /** What conv3d takes beside what is required. */
    public static final class Conv3dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private Conv3dOptions() {}

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public Conv3dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance of the windows along each spatial axis; [1, 1, 1] unless stated.
         *
         * @param stride the value
         * @return these options
         */
        public Conv3dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros put on both sides of each spatial axis; [0, 0, 0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public Conv3dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance of the kernel's taps along each spatial axis; [1, 1, 1] unless stated.
         *
         * @param dilation the value
         * @return these options
         */
        public Conv3dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
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
     * <p>x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y [n, features, d',
     * h', w'] with extents as conv2d's, a cross-correlation. As PyTorch's conv3d.
     *
     * <p>Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
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
     * <p>x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y [n, features, d',
     * h', w'] with extents as conv2d's, a cross-correlation. As PyTorch's conv3d.
     *
     * <p>Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node conv3d(Node kernel, Node bias) {
        return append("conv3d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv3d: y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e]
     * + bias[o].
     *
     * <p>x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y [n, features, d',
     * h', w'] with extents as conv2d's, a cross-correlation. As PyTorch's conv3d.
     *
     * <p>Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param options states what is optional
     * @return the node
     */
    public Node conv3d(Node kernel, Consumer<Conv3dOptions> options) {
        Conv3dOptions given = given(new Conv3dOptions(), options);
        return append("conv3d", given.attrs, operands(kernel, given.bias));
    }

    /** What convTranspose1d takes beside what is required. */
    public static final class ConvTranspose1dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private ConvTranspose1dOptions() {}

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public ConvTranspose1dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance of the windows along each spatial axis; [1] unless stated.
         *
         * @param stride the value
         * @return these options
         */
        public ConvTranspose1dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros put on both sides of each spatial axis; [0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public ConvTranspose1dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance of the kernel's taps along each spatial axis; [1] unless stated.
         *
         * @param dilation the value
         * @return these options
         */
        public ConvTranspose1dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
         *
         * @param groups the value
         * @return these options
         */
        public ConvTranspose1dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }

        /**
         * Extent added at the end of each spatial axis of the result; [0] unless stated.
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
     * <p>x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'], and w' = (w − 1)·s + d·(kw
     * − 1) + 1 + output_padding − 2p. PyTorch's <code>conv_transpose1d</code>; JAX's <code>lax.conv_transpose</code>
     * with transpose_kernel, which has the kernel's axes in another order, and paddings of the convolution that it
     * widens.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
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
     * <p>x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'], and w' = (w − 1)·s + d·(kw
     * − 1) + 1 + output_padding − 2p. PyTorch's <code>conv_transpose1d</code>; JAX's <code>lax.conv_transpose</code>
     * with transpose_kernel, which has the kernel's axes in another order, and paddings of the convolution that it
     * widens.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node convTranspose1d(Node kernel, Node bias) {
        return append("conv_transpose1d", new Attrs(), operands(kernel, bias));
    }

    /**
     * The op conv_transpose1d: y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of
     * conv1d.
     *
     * <p>x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'], and w' = (w − 1)·s + d·(kw
     * − 1) + 1 + output_padding − 2p. PyTorch's <code>conv_transpose1d</code>; JAX's <code>lax.conv_transpose</code>
     * with transpose_kernel, which has the kernel's axes in another order, and paddings of the convolution that it
     * widens.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param options states what is optional
     * @return the node
     */
    public Node convTranspose1d(Node kernel, Consumer<ConvTranspose1dOptions> options) {
        ConvTranspose1dOptions given = given(new ConvTranspose1dOptions(), options);
        return append("conv_transpose1d", given.attrs, operands(kernel, given.bias));
    }

    /** What convTranspose2d takes beside what is required. */
    public static final class ConvTranspose2dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private ConvTranspose2dOptions() {}

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public ConvTranspose2dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance of the windows along each spatial axis; [1, 1] unless stated.
         *
         * @param stride the value
         * @return these options
         */
        public ConvTranspose2dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros put on both sides of each spatial axis; [0, 0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public ConvTranspose2dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance of the kernel's taps along each spatial axis; [1, 1] unless stated.
         *
         * @param dilation the value
         * @return these options
         */
        public ConvTranspose2dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
         *
         * @param groups the value
         * @return these options
         */
        public ConvTranspose2dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }

        /**
         * Extent added at the end of each spatial axis of the result; [0, 0] unless stated.
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
     * 1)·s − 2p + d·(kh − 1) + 1 + output_padding. As PyTorch's conv_transpose2d.
     *
     * <p>Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
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
     * 1)·s − 2p + d·(kh − 1) + 1 + output_padding. As PyTorch's conv_transpose2d.
     *
     * <p>Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param bias an operand; null where it is absent
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
     * 1)·s − 2p + d·(kh − 1) + 1 + output_padding. As PyTorch's conv_transpose2d.
     *
     * <p>Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param options states what is optional
     * @return the node
     */
    public Node convTranspose2d(Node kernel, Consumer<ConvTranspose2dOptions> options) {
        ConvTranspose2dOptions given = given(new ConvTranspose2dOptions(), options);
        return append("conv_transpose2d", given.attrs, operands(kernel, given.bias));
    }

    /** What convTranspose3d takes beside what is required. */
    public static final class ConvTranspose3dOptions {
        private final Attrs attrs = new Attrs();
        private Node bias;

        private ConvTranspose3dOptions() {}

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public ConvTranspose3dOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Distance of the windows along each spatial axis; [1, 1, 1] unless stated.
         *
         * @param stride the value
         * @return these options
         */
        public ConvTranspose3dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Zeros put on both sides of each spatial axis; [0, 0, 0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public ConvTranspose3dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance of the kernel's taps along each spatial axis; [1, 1, 1] unless stated.
         *
         * @param dilation the value
         * @return these options
         */
        public ConvTranspose3dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
         *
         * @param groups the value
         * @return these options
         */
        public ConvTranspose3dOptions groups(long groups) {
            attrs.with("groups", groups);
            return this;
        }

        /**
         * Extent added at the end of each spatial axis of the result; [0, 0, 0] unless stated.
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
     * extents as conv_transpose2d's. As PyTorch's conv_transpose3d.
     *
     * <p>Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
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
     * extents as conv_transpose2d's. As PyTorch's conv_transpose3d.
     *
     * <p>Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param bias an operand; null where it is absent
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
     * extents as conv_transpose2d's. As PyTorch's conv_transpose3d.
     *
     * <p>Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernel an operand
     * @param options states what is optional
     * @return the node
     */
    public Node convTranspose3d(Node kernel, Consumer<ConvTranspose3dOptions> options) {
        ConvTranspose3dOptions given = given(new ConvTranspose3dOptions(), options);
        return append("conv_transpose3d", given.attrs, operands(kernel, given.bias));
    }

    /**
     * The op copy_to_device: y = x.
     *
     * <p>Where a graph runs is the server's choice, so there is nothing to move; the gradient passes through.
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

    /** What crossEntropy takes beside what is required. */
    public static final class CrossEntropyOptions {
        private final Attrs attrs = new Attrs();

        private CrossEntropyOptions() {}

        /**
         * What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
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
     * The op cross_entropy: loss = −Σ p · log softmax(logits) over the last axis, which holds the classes; then the
     * mean over all rows.
     *
     * <p>logits [..., classes]; targets are class indices [...] of an integer dtype (p is 1 at the index), or the
     * distribution p itself, float, of the logits' shape. Indices lie in [0, classes).
     *
     * <p>Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if
     * float.
     *
     * <p>Of its operands, logits is this node.
     *
     * @param targets an operand
     * @return the node
     */
    public Node crossEntropy(Node targets) {
        return append("cross_entropy", new Attrs(), operands(targets));
    }

    /**
     * The op cross_entropy: loss = −Σ p · log softmax(logits) over the last axis, which holds the classes; then the
     * mean over all rows.
     *
     * <p>logits [..., classes]; targets are class indices [...] of an integer dtype (p is 1 at the index), or the
     * distribution p itself, float, of the logits' shape. Indices lie in [0, classes).
     *
     * <p>Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if
     * float.
     *
     * <p>Of its operands, logits is this node.
     *
     * @param targets an operand
     * @param options states what is optional
     * @return the node
     */
    public Node crossEntropy(Node targets, Consumer<CrossEntropyOptions> options) {
        CrossEntropyOptions given = given(new CrossEntropyOptions(), options);
        return append("cross_entropy", given.attrs, operands(targets));
    }

    /** What cumlogsumexp takes beside what is required. */
    public static final class CumlogsumexpOptions {
        private final Attrs attrs = new Attrs();

        private CumlogsumexpOptions() {}

        /**
         * Whether to run from the end to the front; false unless stated.
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
     * <code>reverse</code>, of x[i] to x[n − 1].
     *
     * <p>As of logsumexp: where all so far is −inf, y is −inf and the gradient 0; those that are inf share it. Where
     * one so far is NaN, so are y and the gradient. Integers give float64. PyTorch's <code>logcumsumexp</code>; JAX's
     * <code>lax.cumlogsumexp</code>, which has <code>reverse</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: Σ g[k] · exp(x[i] − y[k]) over k from i on.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to run along
     * @return the node
     */
    public Node cumlogsumexp(long axis) {
        return append("cumlogsumexp", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cumlogsumexp: y[i] = log(exp x[0] + … + exp x[i]) along <code>axis</code>, stable; with
     * <code>reverse</code>, of x[i] to x[n − 1].
     *
     * <p>As of logsumexp: where all so far is −inf, y is −inf and the gradient 0; those that are inf share it. Where
     * one so far is NaN, so are y and the gradient. Integers give float64. PyTorch's <code>logcumsumexp</code>; JAX's
     * <code>lax.cumlogsumexp</code>, which has <code>reverse</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: Σ g[k] · exp(x[i] − y[k]) over k from i on.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to run along
     * @param options states what is optional
     * @return the node
     */
    public Node cumlogsumexp(long axis, Consumer<CumlogsumexpOptions> options) {
        CumlogsumexpOptions given = given(new CumlogsumexpOptions(), options);
        return append("cumlogsumexp", given.attrs.with("axis", axis), operands());
    }

    /** What cummax takes beside what is required. */
    public static final class CummaxOptions {
        private final Attrs attrs = new Attrs();

        private CummaxOptions() {}

        /**
         * Whether to run from the end to the front; false unless stated.
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
     * <p>NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
     * PyTorch's <code>cummax</code>, whose gradient takes the last of ties; JAX's <code>lax.cummax</code>, which has
     * <code>reverse</code>, and shares.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to run along
     * @return the node
     */
    public Node cummax(long axis) {
        return append("cummax", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cummax: y[i] = the largest of x[0], …, x[i] along <code>axis</code>; with <code>reverse</code>, of x[i],
     * …, x[n − 1].
     *
     * <p>NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
     * PyTorch's <code>cummax</code>, whose gradient takes the last of ties; JAX's <code>lax.cummax</code>, which has
     * <code>reverse</code>, and shares.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to run along
     * @param options states what is optional
     * @return the node
     */
    public Node cummax(long axis, Consumer<CummaxOptions> options) {
        CummaxOptions given = given(new CummaxOptions(), options);
        return append("cummax", given.attrs.with("axis", axis), operands());
    }

    /** What cummin takes beside what is required. */
    public static final class CumminOptions {
        private final Attrs attrs = new Attrs();

        private CumminOptions() {}

        /**
         * Whether to run from the end to the front; false unless stated.
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
     * <p>NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
     * PyTorch's <code>cummin</code>, whose gradient takes the last of ties; JAX's <code>lax.cummin</code>, which has
     * <code>reverse</code>, and shares.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to run along
     * @return the node
     */
    public Node cummin(long axis) {
        return append("cummin", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cummin: y[i] = the smallest of x[0], …, x[i] along <code>axis</code>; with <code>reverse</code>, of x[i],
     * …, x[n − 1].
     *
     * <p>NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
     * PyTorch's <code>cummin</code>, whose gradient takes the last of ties; JAX's <code>lax.cummin</code>, which has
     * <code>reverse</code>, and shares.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to run along
     * @param options states what is optional
     * @return the node
     */
    public Node cummin(long axis, Consumer<CumminOptions> options) {
        CumminOptions given = given(new CumminOptions(), options);
        return append("cummin", given.attrs.with("axis", axis), operands());
    }

    /** What cumprod takes beside what is required. */
    public static final class CumprodOptions {
        private final Attrs attrs = new Attrs();

        private CumprodOptions() {}

        /**
         * Whether to run from the end to the front; false unless stated.
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
     * <p>Integers and bool multiply in int64, float16 in float32. The gradient is exact whatever the number of zeros,
     * and so are those of higher order. PyTorch's and NumPy's <code>cumprod</code>; <code>reverse</code> is that of
     * JAX's <code>lax.cumprod</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: (product of those before i) · Σ g[k] · (product of those behind i, to k), over k from i on.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to run along
     * @return the node
     */
    public Node cumprod(long axis) {
        return append("cumprod", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cumprod: y[i] = x[0] · … · x[i] along <code>axis</code>; with <code>reverse</code>, x[i] · … · x[n − 1].
     *
     * <p>Integers and bool multiply in int64, float16 in float32. The gradient is exact whatever the number of zeros,
     * and so are those of higher order. PyTorch's and NumPy's <code>cumprod</code>; <code>reverse</code> is that of
     * JAX's <code>lax.cumprod</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: (product of those before i) · Σ g[k] · (product of those behind i, to k), over k from i on.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to run along
     * @param options states what is optional
     * @return the node
     */
    public Node cumprod(long axis, Consumer<CumprodOptions> options) {
        CumprodOptions given = given(new CumprodOptions(), options);
        return append("cumprod", given.attrs.with("axis", axis), operands());
    }

    /** What cumsum takes beside what is required. */
    public static final class CumsumOptions {
        private final Attrs attrs = new Attrs();

        private CumsumOptions() {}

        /**
         * Whether to run from the end to the front; since opset 2; false unless stated.
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
     * <p>Integers and bool add up in int64, float16 in float32. PyTorch's and NumPy's <code>cumsum</code>;
     * <code>reverse</code> is that of JAX's <code>lax.cumsum</code>.
     *
     * <p>Gradient: g, added up from the end.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to add up along
     * @return the node
     */
    public Node cumsum(long axis) {
        return append("cumsum", new Attrs().with("axis", axis), operands());
    }

    /**
     * The op cumsum: y[i] = x[0] + … + x[i] along <code>axis</code>; with <code>reverse</code>, x[i] + … + x[n − 1].
     *
     * <p>Integers and bool add up in int64, float16 in float32. PyTorch's and NumPy's <code>cumsum</code>;
     * <code>reverse</code> is that of JAX's <code>lax.cumsum</code>.
     *
     * <p>Gradient: g, added up from the end.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to add up along
     * @param options states what is optional
     * @return the node
     */
    public Node cumsum(long axis, Consumer<CumsumOptions> options) {
        CumsumOptions given = given(new CumsumOptions(), options);
        return append("cumsum", given.attrs.with("axis", axis), operands());
    }

    /**
     * The op det: y = det x of the square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 of a matrix
     * without entries.
     *
     * <p><code>slogdet</code> neither overflows nor underflows. The gradient is the matrix of cofactors, exact for
     * singular matrices, too; second derivatives of these are NaN, or infinite. A matrix that holds NaN gives NaN for
     * itself alone. Integers give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and
     * NumPy's <code>linalg.det</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g · the conjugate cofactors of x: of det(x) x⁻ᵀ where x is regular.
     *
     * @return the node
     */
    public Node det() {
        return append("det", new Attrs(), operands());
    }

    /** What diag takes beside what is required. */
    public static final class DiagOptions {
        private final Attrs attrs = new Attrs();

        private DiagOptions() {}

        /**
         * Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
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
     * The op diag: The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; of a vector, the matrix with that
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
     * The op diag: The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; of a vector, the matrix with that
     * diagonal.
     *
     * <p>x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m]. A
     * negative offset counts downwards: y[…, i] = x[…, i − offset, i].
     *
     * <p>Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node diag(Consumer<DiagOptions> options) {
        DiagOptions given = given(new DiagOptions(), options);
        return append("diag", given.attrs, operands());
    }

    /**
     * The op digamma: y = ψ(x) = Γ'(x) / Γ(x): −∞ at 0, NaN at −1, −2, …. To 10 units; near its zeros below −1 to
     * 1e-15.
     *
     * <p>SciPy's loses one digit with each digit by which x &lt; 0 is closer to a pole; this one keeps all.
     *
     * <p>Gradient: g · polygamma(x, order=1).
     *
     * @return the node
     */
    public Node digamma() {
        return append("digamma", new Attrs(), operands());
    }

    /**
     * The op div: y = a / b, elementwise, broadcasting as NumPy; integers give floats, x / 0 gives ±inf or NaN.
     *
     * <p>Gradient: da = g / b, db = −y · g / b.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node div(Node b) {
        return append("div", new Attrs(), operands(b));
    }

    /**
     * The op div_scalar: y = x / scalar. A scalar of 0 gives ±inf or NaN, as <code>div</code>.
     *
     * <p>Gradient: g / scalar.
     *
     * <p>Of its operands, x is this node.
     *
     * @param scalar the constant
     * @return the node
     */
    public Node divScalar(double scalar) {
        return append("div_scalar", new Attrs().with("scalar", scalar), operands());
    }

    /** What eigh takes beside what is required. */
    public static final class EighOptions {
        private final Attrs attrs = new Attrs();

        private EighOptions() {}

        /**
         * Where values are equal and vectors are read: nan, or whole: only whole spaces are depended on; one of nan,
         * whole; nan unless stated.
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
     * The op eigh: w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2: that is v diag(w) vᴴ, and vᴴ v
     * = 1.
     *
     * <p>x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], a vector in each column. Two results, read through
     * get_output. Where only eigenvalues are read, vectors are not computed, and the gradient of eigenvalues alone
     * holds at equal ones, too, as long as the function treats these alike.
     *
     * <p>Signs of vectors, and phases of complex ones, are as LAPACK leaves them: a function has a meaning only if it
     * does not depend on them. Nor do single vectors of equal eigenvalues have one. Eigenvalues closer than 16 n ε ‖x‖
     * are taken for equal; the gradient of a function of v there is NaN, of that matrix alone; or, where
     * <code>degenerate</code> is whole, right if the function depends on whole eigenspaces, as a projector does, and
     * wrong else: v √w vᵀ does not, and is what <code>symmetric_function</code> is for. Second derivatives where a pair
     * was left out are NaN, and so are those of equal eigenvalues alone. A matrix that holds an infinity or NaN, or for
     * which LAPACK finds no answer, gives NaN for itself alone. Integers give float64; float16 is computed in a wider
     * float, and rounded once. M. B. Giles, Collected matrix derivative results for forward and reverse mode
     * algorithmic differentiation (2008), section 3.1. PyTorch's and JAX's <code>linalg.eigh</code>, which take the
     * lower triangle unless told to take both, and answer NaN, or what rounding makes of it, at equal eigenvalues.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F where v is
     * unread.
     *
     * @return the node
     */
    public Node eigh() {
        return append("eigh", new Attrs(), operands());
    }

    /**
     * The op eigh: w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2: that is v diag(w) vᴴ, and vᴴ v
     * = 1.
     *
     * <p>x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], a vector in each column. Two results, read through
     * get_output. Where only eigenvalues are read, vectors are not computed, and the gradient of eigenvalues alone
     * holds at equal ones, too, as long as the function treats these alike.
     *
     * <p>Signs of vectors, and phases of complex ones, are as LAPACK leaves them: a function has a meaning only if it
     * does not depend on them. Nor do single vectors of equal eigenvalues have one. Eigenvalues closer than 16 n ε ‖x‖
     * are taken for equal; the gradient of a function of v there is NaN, of that matrix alone; or, where
     * <code>degenerate</code> is whole, right if the function depends on whole eigenspaces, as a projector does, and
     * wrong else: v √w vᵀ does not, and is what <code>symmetric_function</code> is for. Second derivatives where a pair
     * was left out are NaN, and so are those of equal eigenvalues alone. A matrix that holds an infinity or NaN, or for
     * which LAPACK finds no answer, gives NaN for itself alone. Integers give float64; float16 is computed in a wider
     * float, and rounded once. M. B. Giles, Collected matrix derivative results for forward and reverse mode
     * algorithmic differentiation (2008), section 3.1. PyTorch's and JAX's <code>linalg.eigh</code>, which take the
     * lower triangle unless told to take both, and answer NaN, or what rounding makes of it, at equal eigenvalues.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F where v is
     * unread.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node eigh(Consumer<EighOptions> options) {
        EighOptions given = given(new EighOptions(), options);
        return append("eigh", given.attrs, operands());
    }

    /** What elu takes beside what is required. */
    public static final class EluOptions {
        private final Attrs attrs = new Attrs();

        private EluOptions() {}

        /**
         * −y for x → −∞; 1.0 unless stated.
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
     * The op elu: y = x for x &gt; 0, else alpha · (eˣ − 1). Derivatives at 0 are those from below: alpha.
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
     * The op elu: y = x for x &gt; 0, else alpha · (eˣ − 1). Derivatives at 0 are those from below: alpha.
     *
     * <p>D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, else g · alpha · eˣ.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node elu(Consumer<EluOptions> options) {
        EluOptions given = given(new EluOptions(), options);
        return append("elu", given.attrs, operands());
    }

    /** What embedding takes beside what is required. */
    public static final class EmbeddingOptions {
        private final Attrs attrs = new Attrs();

        private EmbeddingOptions() {}

        /**
         * Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
         *
         * @param fromEnd the value
         * @return these options
         */
        public EmbeddingOptions fromEnd(boolean fromEnd) {
            attrs.with("from_end", fromEnd);
            return this;
        }

        /**
         * A row that gets no gradient, read as others are; absent: none; since opset 2.
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
     * <p>weight [rows, features…], indices of any shape with entries in [0, rows); y [shape of indices…, features…].
     * With <code>from_end</code>, entries lie in [−rows, rows), and negative ones count from the end. PyTorch's
     * <code>functional.embedding</code>, which takes no negative index, and has <code>padding_idx</code>; JAX's
     * weight[indices], which takes negative ones, and moves those outside to the nearest row.
     *
     * <p>Gradient: d weight = g added to the rows that were read, repeated ones accumulating; none for indices.
     *
     * <p>Of its operands, weight is this node.
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
     * <p>weight [rows, features…], indices of any shape with entries in [0, rows); y [shape of indices…, features…].
     * With <code>from_end</code>, entries lie in [−rows, rows), and negative ones count from the end. PyTorch's
     * <code>functional.embedding</code>, which takes no negative index, and has <code>padding_idx</code>; JAX's
     * weight[indices], which takes negative ones, and moves those outside to the nearest row.
     *
     * <p>Gradient: d weight = g added to the rows that were read, repeated ones accumulating; none for indices.
     *
     * <p>Of its operands, weight is this node.
     *
     * @param indices an operand
     * @param options states what is optional
     * @return the node
     */
    public Node embedding(Node indices, Consumer<EmbeddingOptions> options) {
        EmbeddingOptions given = given(new EmbeddingOptions(), options);
        return append("embedding", given.attrs, operands(indices));
    }

    /**
     * The op equal: y = (a = b), elementwise; NaN equals nothing.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node equal(Node b) {
        return append("equal", new Attrs(), operands(b));
    }

    /**
     * The op erf: y = erf x = 2/√π ∫₀ˣ exp(−t²) dt, to 2 units in the last place.
     *
     * <p>Gradient: g · 2/√π · exp(−x²).
     *
     * @return the node
     */
    public Node erf() {
        return append("erf", new Attrs(), operands());
    }

    /**
     * The op erfc: y = erfc x = 1 − erf x, to 2 units in the last place, also where it is small.
     *
     * <p>Gradient: −g · 2/√π · exp(−x²).
     *
     * @return the node
     */
    public Node erfc() {
        return append("erfc", new Attrs(), operands());
    }

    /**
     * The op erfinv: y with erf y = x: ±∞ at ±1, NaN beyond. To 2 units.
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

    /** What fft takes beside what is required. */
    public static final class FftOptions {
        private final Attrs attrs = new Attrs();

        private FftOptions() {}

        /**
         * The axes to transform; absent: the last.
         *
         * @param axes the value
         * @return these options
         */
        public FftOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
         *
         * @param sizes the value
         * @return these options
         */
        public FftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }

        /**
         * Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
         * ortho, forward; backward unless stated.
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
     * <p><code>norm</code> is NumPy's: <code>forward</code> divides by n, <code>ortho</code> by √n. Real operands are
     * taken as complex. float16 gives complex64, integers complex128. PyTorch's, JAX's and NumPy's <code>fft</code>,
     * and <code>fft2</code> and <code>fftn</code> by several axes.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: ifft(g) without its division: of a real operand, the real part.
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
     * <p><code>norm</code> is NumPy's: <code>forward</code> divides by n, <code>ortho</code> by √n. Real operands are
     * taken as complex. float16 gives complex64, integers complex128. PyTorch's, JAX's and NumPy's <code>fft</code>,
     * and <code>fft2</code> and <code>fftn</code> by several axes.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: ifft(g) without its division: of a real operand, the real part.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node fft(Consumer<FftOptions> options) {
        FftOptions given = given(new FftOptions(), options);
        return append("fft", given.attrs, operands());
    }

    /**
     * The op flatten: y = x with a run of neighbouring axes merged into one; absent: all of them. A 0-d tensor becomes
     * [1].
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axes neighbouring axes to merge; absent: all
     * @return the node
     */
    public Node flatten(long... axes) {
        return append("flatten", new Attrs().with("axes", axes), operands());
    }

    /**
     * The op flip: y = x with the order of the entries reversed on <code>axes</code>; absent: on all.
     *
     * <p>Gradient: g, flipped.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axes axes to reverse; absent: all
     * @return the node
     */
    public Node flip(long... axes) {
        return append("flip", new Attrs().with("axes", axes), operands());
    }

    /**
     * The op floor: y = ⌊x⌋: down to the next whole number.
     *
     * @return the node
     */
    public Node floor() {
        return append("floor", new Attrs(), operands());
    }

    /**
     * The op floor_div: y = ⌊a / b⌋, elementwise, broadcasting: Python's //, with the remainder <code>mod</code>. An
     * integer by 0 is 0.
     *
     * <p>PyTorch's and NumPy's <code>floor_divide</code>, JAX's <code>jnp.floor_divide</code>. JAX's gives −1 for an
     * integer by 0.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node floorDiv(Node b) {
        return append("floor_div", new Attrs(), operands(b));
    }

    /** What gather takes beside what is required. */
    public static final class GatherOptions {
        private final Attrs attrs = new Attrs();
        private Node index;

        private GatherOptions() {}

        /**
         * An operand.
         *
         * @param index a node of the same graph
         * @return these options
         */
        public GatherOptions index(Node index) {
            this.index = index;
            return this;
        }

        /**
         * The axis that is indexed; 0 unless stated.
         *
         * @param axis the value
         * @return these options
         */
        public GatherOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Positions on the axis, in place of <code>index</code>.
         *
         * @param indices the value
         * @return these options
         */
        public GatherOptions indices(long... indices) {
            attrs.with("indices", indices);
            return this;
        }

        /**
         * Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
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
     * The op gather: y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others.
     *
     * <p><code>index</code> has x's rank and may be smaller than x off the axis, as in PyTorch; y has its shape. With
     * one operand, the list <code>indices</code> picks slices: y = x at those positions of the axis. Indices lie in [0,
     * extent); with <code>from_end</code>, in [−extent, extent), and negative ones count from the end, as those of x[i]
     * in PyTorch, JAX and NumPy do. PyTorch's <code>gather</code> and JAX's <code>take_along_axis</code>, of which the
     * former takes no negative index.
     *
     * <p>Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
     *
     * @return the node
     */
    public Node gather() {
        return append("gather", new Attrs(), operands());
    }

    /**
     * The op gather: y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others.
     *
     * <p><code>index</code> has x's rank and may be smaller than x off the axis, as in PyTorch; y has its shape. With
     * one operand, the list <code>indices</code> picks slices: y = x at those positions of the axis. Indices lie in [0,
     * extent); with <code>from_end</code>, in [−extent, extent), and negative ones count from the end, as those of x[i]
     * in PyTorch, JAX and NumPy do. PyTorch's <code>gather</code> and JAX's <code>take_along_axis</code>, of which the
     * former takes no negative index.
     *
     * <p>Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
     *
     * <p>Of its operands, x is this node.
     *
     * @param index an operand; null where it is absent
     * @return the node
     */
    public Node gather(Node index) {
        return append("gather", new Attrs(), operands(index));
    }

    /**
     * The op gather: y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others.
     *
     * <p><code>index</code> has x's rank and may be smaller than x off the axis, as in PyTorch; y has its shape. With
     * one operand, the list <code>indices</code> picks slices: y = x at those positions of the axis. Indices lie in [0,
     * extent); with <code>from_end</code>, in [−extent, extent), and negative ones count from the end, as those of x[i]
     * in PyTorch, JAX and NumPy do. PyTorch's <code>gather</code> and JAX's <code>take_along_axis</code>, of which the
     * former takes no negative index.
     *
     * <p>Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node gather(Consumer<GatherOptions> options) {
        GatherOptions given = given(new GatherOptions(), options);
        return append("gather", given.attrs, operands(given.index));
    }

    /** What gelu takes beside what is required. */
    public static final class GeluOptions {
        private final Attrs attrs = new Attrs();

        private GeluOptions() {}

        /**
         * None: by the error function; tanh: its approximation; one of none, tanh; none unless stated.
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
     * The op gelu: y = x · Φ(x), Φ the standard normal distribution function; 0 at −∞. D. Hendrycks, K. Gimpel,
     * arXiv:1606.08415.
     *
     * <p><code>approximate</code> tanh: y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), the curve that many models
     * were trained with.
     *
     * <p>Gradient: g · (Φ(x) + x · Φ′(x)).
     *
     * @return the node
     */
    public Node gelu() {
        return append("gelu", new Attrs(), operands());
    }

    /**
     * The op gelu: y = x · Φ(x), Φ the standard normal distribution function; 0 at −∞. D. Hendrycks, K. Gimpel,
     * arXiv:1606.08415.
     *
     * <p><code>approximate</code> tanh: y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), the curve that many models
     * were trained with.
     *
     * <p>Gradient: g · (Φ(x) + x · Φ′(x)).
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node gelu(Consumer<GeluOptions> options) {
        GeluOptions given = given(new GeluOptions(), options);
        return append("gelu", given.attrs, operands());
    }

    /**
     * The op get_output: One result of an op that has several: y = x[index].
     *
     * <p>Gradient: g lands on that result; the others of the same op have 0.
     *
     * <p>Of its operands, x is this node.
     *
     * @param index which result, from 0
     * @return the node
     */
    public Node getOutput(long index) {
        return append("get_output", new Attrs().with("index", index), operands());
    }

    /**
     * The op grad: The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
     *
     * <p>A node like any other: usable downstream, and differentiable again, to any order. x may be any float node;
     * zeros where y does not depend on it. A complex y needs a cotangent; by a complex x, the gradient is ∂/∂Re x + i
     * ∂/∂Im x.
     *
     * <p>Gradient: the gradient is written out as nodes first, and those are differentiated.
     *
     * <p>Of its operands, y is this node.
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
     * <p>A node like any other: usable downstream, and differentiable again, to any order. x may be any float node;
     * zeros where y does not depend on it. A complex y needs a cotangent; by a complex x, the gradient is ∂/∂Re x + i
     * ∂/∂Im x.
     *
     * <p>Gradient: the gradient is written out as nodes first, and those are differentiated.
     *
     * <p>Of its operands, y is this node.
     *
     * @param x an operand
     * @param cotangent an operand; null where it is absent
     * @return the node
     */
    public Node grad(Node x, Node cotangent) {
        return append("grad", new Attrs(), operands(x, cotangent));
    }

    /**
     * The op greater: y = (a &gt; b), elementwise; false beside NaN.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node greater(Node b) {
        return append("greater", new Attrs(), operands(b));
    }

    /**
     * The op greater_equal: y = (a ≥ b), elementwise; false beside NaN.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node greaterEqual(Node b) {
        return append("greater_equal", new Attrs(), operands(b));
    }

    /** What groupNorm takes beside what is required. */
    public static final class GroupNormOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private GroupNormOptions() {}

        /**
         * An operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public GroupNormOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public GroupNormOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Added to the variance or mean square; positive; 1e-05 unless stated.
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
     * The op group_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each example's groups
     * of channels.
     *
     * <p>x [n, channels, …]; weight and bias [channels], which are cut into <code>groups</code> equal parts. n in the
     * denominator. Y. Wu, K. He, "Group normalization" (2018). PyTorch's <code>group_norm</code>, Flax's
     * <code>GroupNorm</code>, whose channels are last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: as of layer_norm, over each group.
     *
     * <p>Of its operands, x is this node.
     *
     * @param groups how many equal parts the channels are cut into
     * @return the node
     */
    public Node groupNorm(long groups) {
        return append("group_norm", new Attrs().with("groups", groups), operands());
    }

    /**
     * The op group_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each example's groups
     * of channels.
     *
     * <p>x [n, channels, …]; weight and bias [channels], which are cut into <code>groups</code> equal parts. n in the
     * denominator. Y. Wu, K. He, "Group normalization" (2018). PyTorch's <code>group_norm</code>, Flax's
     * <code>GroupNorm</code>, whose channels are last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: as of layer_norm, over each group.
     *
     * <p>Of its operands, x is this node.
     *
     * @param groups how many equal parts the channels are cut into
     * @param weight an operand; null where it is absent
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node groupNorm(long groups, Node weight, Node bias) {
        return append("group_norm", new Attrs().with("groups", groups), operands(weight, bias));
    }

    /**
     * The op group_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each example's groups
     * of channels.
     *
     * <p>x [n, channels, …]; weight and bias [channels], which are cut into <code>groups</code> equal parts. n in the
     * denominator. Y. Wu, K. He, "Group normalization" (2018). PyTorch's <code>group_norm</code>, Flax's
     * <code>GroupNorm</code>, whose channels are last.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: as of layer_norm, over each group.
     *
     * <p>Of its operands, x is this node.
     *
     * @param groups how many equal parts the channels are cut into
     * @param options states what is optional
     * @return the node
     */
    public Node groupNorm(long groups, Consumer<GroupNormOptions> options) {
        GroupNormOptions given = given(new GroupNormOptions(), options);
        return append("group_norm", given.attrs.with("groups", groups), operands(given.weight, given.bias));
    }

    /**
     * The op i0: y = I₀(x): NumPy's, <code>torch.special.i0</code>, JAX's <code>scipy.special.i0</code>. To 5 units;
     * infinite beyond |x| = 713.98.
     *
     * <p>There SciPy's is infinite from 709.78 on.
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
     * The op i0e: y = exp(−|x|) I₀(x): SciPy's, <code>torch.special.i0e</code>, JAX's <code>bessel_i0e</code>. To 4
     * units.
     *
     * <p>The derivative keeps its digits for large x, where I₀ and I₁ have most in common. At 0, where |x| has a kink,
     * it is 0, as PyTorch's and JAX's.
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
     * The op i1: y = I₁(x): SciPy's, <code>torch.special.i1</code>, JAX's <code>scipy.special.i1</code>. To 5 units. At
     * 0, the derivative is 1/2.
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
     * The op i1e: y = exp(−|x|) I₁(x): SciPy's, <code>torch.special.i1e</code>, JAX's <code>bessel_i1e</code>. To 4
     * units.
     *
     * <p>At 0, the derivative is 1/2.
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
     * The op identity: y = x, as a node of its own.
     *
     * <p>Gradient: g.
     *
     * @return the node
     */
    public Node identity() {
        return append("identity", new Attrs(), operands());
    }

    /** What ifft takes beside what is required. */
    public static final class IfftOptions {
        private final Attrs attrs = new Attrs();

        private IfftOptions() {}

        /**
         * The axes to transform; absent: the last.
         *
         * @param axes the value
         * @return these options
         */
        public IfftOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
         *
         * @param sizes the value
         * @return these options
         */
        public IfftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }

        /**
         * Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
         * ortho, forward; backward unless stated.
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
     * <p><code>norm</code> is NumPy's: <code>forward</code> does not divide, <code>ortho</code> does by √n. Real
     * operands are taken as complex. float16 gives complex64, integers complex128. PyTorch's, JAX's and NumPy's
     * <code>ifft</code>, and <code>ifft2</code> and <code>ifftn</code> by several axes.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: fft(g) / n: of a real operand, the real part.
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
     * <p><code>norm</code> is NumPy's: <code>forward</code> does not divide, <code>ortho</code> does by √n. Real
     * operands are taken as complex. float16 gives complex64, integers complex128. PyTorch's, JAX's and NumPy's
     * <code>ifft</code>, and <code>ifft2</code> and <code>ifftn</code> by several axes.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: fft(g) / n: of a real operand, the real part.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node ifft(Consumer<IfftOptions> options) {
        IfftOptions given = given(new IfftOptions(), options);
        return append("ifft", given.attrs, operands());
    }

    /**
     * The op igamma: y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), broadcasting: <code>torch.special.gammainc</code>, JAX's
     * <code>igamma</code>, SciPy's.
     *
     * <p>To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives by x are to 1e-12 of their
     * value, by a (of which PyTorch has none, and JAX's are to 1e-7 of 1) to 1e-12; there is no second derivative by a.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = g · ∂P/∂a by an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a).
     *
     * <p>Of its operands, a is this node.
     *
     * @param x an operand
     * @return the node
     */
    public Node igamma(Node x) {
        return append("igamma", new Attrs(), operands(x));
    }

    /**
     * The op igammac: y = Q(a, x) = 1 − P(a, x), accurate where it is small: <code>torch.special.gammaincc</code>,
     * JAX's <code>igammac</code>, SciPy's.
     *
     * <p>To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives as those of
     * <code>igamma</code>, with the other sign.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = −g · ∂P/∂a by an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
     *
     * <p>Of its operands, a is this node.
     *
     * @param x an operand
     * @return the node
     */
    public Node igammac(Node x) {
        return append("igammac", new Attrs(), operands(x));
    }

    /**
     * The op imag: y = Im x; 0 for a real x. JAX's and NumPy's <code>imag</code>; PyTorch's refuses a real x.
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
     * <p>Where x is singular y is NaN, or, where rounding hides that, very large; the others of the batch are as if it
     * were not there. To solve a system, <code>solve</code> is quicker and more accurate. Integers give float64;
     * float16 is computed in a wider float, and rounded once.
     *
     * <p>Gradient: −yᴴ g yᴴ.
     *
     * @return the node
     */
    public Node inv() {
        return append("inv", new Attrs(), operands());
    }

    /** What irfft takes beside what is required. */
    public static final class IrfftOptions {
        private final Attrs attrs = new Attrs();

        private IrfftOptions() {}

        /**
         * The axes to transform; absent: the last.
         *
         * @param axes the value
         * @return these options
         */
        public IrfftOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
         *
         * @param sizes the value
         * @return these options
         */
        public IrfftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }

        /**
         * Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
         * ortho, forward; backward unless stated.
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
     * The op irfft: The real tensor whose <code>rfft</code> x is: of n = <code>sizes</code> points on the last of
     * <code>axes</code>, 2 (m − 1) for m entries of x.
     *
     * <p>The imaginary parts of entry 0, and of entry n / 2 where n is even, count for nothing. Real operands are taken
     * as complex. float16 gives float16, integers float64. <code>norm</code> is that of <code>ifft</code>. PyTorch's,
     * JAX's and NumPy's <code>irfft</code>, and <code>irfft2</code> and <code>irfftn</code> by several axes.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: rfft(g) / n, the inner entries twice.
     *
     * @return the node
     */
    public Node irfft() {
        return append("irfft", new Attrs(), operands());
    }

    /**
     * The op irfft: The real tensor whose <code>rfft</code> x is: of n = <code>sizes</code> points on the last of
     * <code>axes</code>, 2 (m − 1) for m entries of x.
     *
     * <p>The imaginary parts of entry 0, and of entry n / 2 where n is even, count for nothing. Real operands are taken
     * as complex. float16 gives float16, integers float64. <code>norm</code> is that of <code>ifft</code>. PyTorch's,
     * JAX's and NumPy's <code>irfft</code>, and <code>irfft2</code> and <code>irfftn</code> by several axes.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: rfft(g) / n, the inner entries twice.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node irfft(Consumer<IrfftOptions> options) {
        IrfftOptions given = given(new IrfftOptions(), options);
        return append("irfft", given.attrs, operands());
    }

    /**
     * The op is_finite: y = whether x is neither infinite nor NaN.
     *
     * @return the node
     */
    public Node isFinite() {
        return append("is_finite", new Attrs(), operands());
    }

    /** What layerNorm takes beside what is required. */
    public static final class LayerNormOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;
        private Node bias;

        private LayerNormOptions() {}

        /**
         * An operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public LayerNormOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * An operand.
         *
         * @param bias a node of the same graph
         * @return these options
         */
        public LayerNormOptions bias(Node bias) {
            this.bias = bias;
            return this;
        }

        /**
         * Axes to normalise over; [-1] unless stated.
         *
         * @param axes the value
         * @return these options
         */
        public LayerNormOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Added to the variance or mean square; positive; 1e-05 unless stated.
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
     * The op layer_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (n in the denominator)
     * over <code>axes</code>.
     *
     * <p>weight and bias have x's extents on <code>axes</code>, in ascending order. J. L. Ba, J. R. Kiros, G. E.
     * Hinton, "Layer normalization" (2016). CJC normalises the whole tensor: give all axes.
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
     *
     * @return the node
     */
    public Node layerNorm() {
        return append("layer_norm", new Attrs(), operands());
    }

    /**
     * The op layer_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (n in the denominator)
     * over <code>axes</code>.
     *
     * <p>weight and bias have x's extents on <code>axes</code>, in ascending order. J. L. Ba, J. R. Kiros, G. E.
     * Hinton, "Layer normalization" (2016). CJC normalises the whole tensor: give all axes.
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
     *
     * <p>Of its operands, x is this node.
     *
     * @param weight an operand; null where it is absent
     * @param bias an operand; null where it is absent
     * @return the node
     */
    public Node layerNorm(Node weight, Node bias) {
        return append("layer_norm", new Attrs(), operands(weight, bias));
    }

    /**
     * The op layer_norm: y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (n in the denominator)
     * over <code>axes</code>.
     *
     * <p>weight and bias have x's extents on <code>axes</code>, in ascending order. J. L. Ba, J. R. Kiros, G. E.
     * Hinton, "Layer normalization" (2016). CJC normalises the whole tensor: give all axes.
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node layerNorm(Consumer<LayerNormOptions> options) {
        LayerNormOptions given = given(new LayerNormOptions(), options);
        return append("layer_norm", given.attrs, operands(given.weight, given.bias));
    }

    /** What leakyRelu takes beside what is required. */
    public static final class LeakyReluOptions {
        private final Attrs attrs = new Attrs();

        private LeakyReluOptions() {}

        /**
         * The slope for x ≤ 0; 0.01 unless stated.
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
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node leakyRelu(Consumer<LeakyReluOptions> options) {
        LeakyReluOptions given = given(new LeakyReluOptions(), options);
        return append("leaky_relu", given.attrs, operands());
    }

    /**
     * The op less: y = (a &lt; b), elementwise; false beside NaN.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node less(Node b) {
        return append("less", new Attrs(), operands(b));
    }

    /**
     * The op less_equal: y = (a ≤ b), elementwise; false beside NaN.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node lessEqual(Node b) {
        return append("less_equal", new Attrs(), operands(b));
    }

    /**
     * The op lgamma: y = log |Γ(x)|: ∞ at 0, −1, −2, …. To 4 units; near its zeros below 0 (−2.457, −2.748, −3.144, …)
     * to 1e-15.
     *
     * <p>SciPy's has no correct digit left where x is within 1e-16 of 1 or 2, the zeros above 0; this one keeps all.
     *
     * <p>Gradient: g · digamma(x).
     *
     * @return the node
     */
    public Node lgamma() {
        return append("lgamma", new Attrs(), operands());
    }

    /** What linear takes beside what is required. */
    public static final class LinearOptions {
        private final Attrs attrs = new Attrs();
        private Node b;

        private LinearOptions() {}

        /**
         * An operand.
         *
         * @param b a node of the same graph
         * @return these options
         */
        public LinearOptions b(Node b) {
            this.b = b;
            return this;
        }

        /**
         * The op that is applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; none unless
         * stated.
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
     * The op linear: y = activation(x &#64; w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b nothing is
     * added.
     *
     * <p>b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; wᵀ, dw = xᵀ &#64; h, db = Σ h over the rows.
     *
     * <p>Of its operands, x is this node.
     *
     * @param w an operand
     * @return the node
     */
    public Node linear(Node w) {
        return append("linear", new Attrs(), operands(w));
    }

    /**
     * The op linear: y = activation(x &#64; w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b nothing is
     * added.
     *
     * <p>b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; wᵀ, dw = xᵀ &#64; h, db = Σ h over the rows.
     *
     * <p>Of its operands, x is this node.
     *
     * @param w an operand
     * @param b an operand; null where it is absent
     * @return the node
     */
    public Node linear(Node w, Node b) {
        return append("linear", new Attrs(), operands(w, b));
    }

    /**
     * The op linear: y = activation(x &#64; w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b nothing is
     * added.
     *
     * <p>b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; wᵀ, dw = xᵀ &#64; h, db = Σ h over the rows.
     *
     * <p>Of its operands, x is this node.
     *
     * @param w an operand
     * @param options states what is optional
     * @return the node
     */
    public Node linear(Node w, Consumer<LinearOptions> options) {
        LinearOptions given = given(new LinearOptions(), options);
        return append("linear", given.attrs, operands(w, given.b));
    }

    /**
     * The op log: y = ln x: −∞ at 0, NaN for x &lt; 0.
     *
     * <p>Of a complex x ln |x| + i · angle x. The cut is the negative real axis: the sign of the imaginary zero says
     * from which side it is seen (C99).
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

    /** What logEps takes beside what is required. */
    public static final class LogEpsOptions {
        private final Attrs attrs = new Attrs();

        private LogEpsOptions() {}

        /**
         * What is added to x; 1e-05 unless stated.
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
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node logEps(Consumer<LogEpsOptions> options) {
        LogEpsOptions given = given(new LogEpsOptions(), options);
        return append("log_eps", given.attrs, operands());
    }

    /**
     * The op log_ndtr: y = log Φ(x), of the standard normal distribution function Φ, in both tails. To 4 units.
     *
     * <p>Its derivative φ(x) / Φ(x) keeps its relative accuracy where Φ(x) is too small for a number, and so do the
     * derivatives of that. Where x &gt; 0, it is as accurate as exp(−x²/2): to x²/2 units.
     *
     * <p>Gradient: g · φ(x) / Φ(x), φ the density.
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

    /** What logSoftmax takes beside what is required. */
    public static final class LogSoftmaxOptions {
        private final Attrs attrs = new Attrs();

        private LogSoftmaxOptions() {}

        /**
         * The axis that adds up to 1; -1 unless stated.
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
     * <p>A row that is −inf throughout gives NaN.
     *
     * <p>Gradient: g − exp(y) · Σ g, the sum along the axis.
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
     * <p>A row that is −inf throughout gives NaN.
     *
     * <p>Gradient: g − exp(y) · Σ g, the sum along the axis.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node logSoftmax(Consumer<LogSoftmaxOptions> options) {
        LogSoftmaxOptions given = given(new LogSoftmaxOptions(), options);
        return append("log_softmax", given.attrs, operands());
    }

    /**
     * The op logaddexp: y = ln(eᵃ + eᵇ), stable. Where both are −∞, y is −∞ and the gradients are 0; where both are ∞,
     * a half each.
     *
     * <p>Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node logaddexp(Node b) {
        return append("logaddexp", new Attrs(), operands(b));
    }

    /**
     * The op logical_and: y = a and b, elementwise, broadcasting. Numbers are true where they are not 0; NaN is true.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node logicalAnd(Node b) {
        return append("logical_and", new Attrs(), operands(b));
    }

    /**
     * The op logical_not: y = not x, elementwise. Numbers are true where they are not 0; NaN is true.
     *
     * @return the node
     */
    public Node logicalNot() {
        return append("logical_not", new Attrs(), operands());
    }

    /**
     * The op logical_or: y = a or b (or both), elementwise, broadcasting. Numbers are true where they are not 0; NaN is
     * true.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node logicalOr(Node b) {
        return append("logical_or", new Attrs(), operands(b));
    }

    /** What logsumexp takes beside what is required. */
    public static final class LogsumexpOptions {
        private final Attrs attrs = new Attrs();

        private LogsumexpOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public LogsumexpOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op logsumexp: y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf over nothing.
     *
     * <p>Where all of x is −inf, y is −inf and the gradient 0. Where some of it is inf, these share the gradient. Where
     * one is NaN, so are y and the gradient. Integers give float64.
     *
     * <p>Gradient: g · exp(x − y).
     *
     * @return the node
     */
    public Node logsumexp() {
        return append("logsumexp", new Attrs(), operands());
    }

    /**
     * The op logsumexp: y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf over nothing.
     *
     * <p>Where all of x is −inf, y is −inf and the gradient 0. Where some of it is inf, these share the gradient. Where
     * one is NaN, so are y and the gradient. Integers give float64.
     *
     * <p>Gradient: g · exp(x − y).
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node logsumexp(Consumer<LogsumexpOptions> options) {
        LogsumexpOptions given = given(new LogsumexpOptions(), options);
        return append("logsumexp", given.attrs, operands());
    }

    /** What lstsq takes beside what is required. */
    public static final class LstsqOptions {
        private final Attrs attrs = new Attrs();

        private LstsqOptions() {}

        /**
         * Of the largest singular value, the part up to which others are taken for 0; absent: none is, and columns are
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
     * The op lstsq: y that makes |a y − b| least: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].
     *
     * <p>y [n], [batch…, n] or [batch…, n, k]. b is a vector if it is 1-d, or one for each matrix if it has a's shape
     * without the last axis and its last two axes cannot be matrices of m rows; else they are. Without
     * <code>rcond</code>, by <code>qr</code>: the columns of a have to be independent. With it, by <code>pinv</code>:
     * singular values up to that part of the largest are taken for 0, and of all y the shortest is given. Integers give
     * float64; float16 is computed in float32, and rounded once. PyTorch's, JAX's and NumPy's
     * <code>linalg.lstsq</code>, of which the first result alone.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node lstsq(Node b) {
        return append("lstsq", new Attrs(), operands(b));
    }

    /**
     * The op lstsq: y that makes |a y − b| least: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].
     *
     * <p>y [n], [batch…, n] or [batch…, n, k]. b is a vector if it is 1-d, or one for each matrix if it has a's shape
     * without the last axis and its last two axes cannot be matrices of m rows; else they are. Without
     * <code>rcond</code>, by <code>qr</code>: the columns of a have to be independent. With it, by <code>pinv</code>:
     * singular values up to that part of the largest are taken for 0, and of all y the shortest is given. Integers give
     * float64; float16 is computed in float32, and rounded once. PyTorch's, JAX's and NumPy's
     * <code>linalg.lstsq</code>, of which the first result alone.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @param options states what is optional
     * @return the node
     */
    public Node lstsq(Node b, Consumer<LstsqOptions> options) {
        LstsqOptions given = given(new LstsqOptions(), options);
        return append("lstsq", given.attrs, operands(b));
    }

    /**
     * The op lu: permutation, l, u with x[permutation] = l u: rows exchanged so that no entry of l is larger than 1.
     *
     * <p>x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal, u
     * [batch…, k, n] upper triangular, k = min(m, n). Three results, read through get_output. To solve a system,
     * <code>solve</code> is quicker. Complex numbers are compared by |Re| + |Im|. The gradient holds where the first k
     * columns of x[permutation] are independent in their first k rows; where they are not, it is infinite or NaN. The
     * permutation has none. A matrix that holds an infinity or NaN gives NaN for itself alone, and its rows as they
     * are. Integers give float64; float16 is computed in a wider float, and rounded once. F. de Hoog, R. Anderssen, M.
     * Lukas, Differentiation of matrix functionals using triangular factorization (2011). PyTorch's
     * <code>linalg.lu</code>, which has a matrix in place of the permutation; JAX's <code>lax.linalg.lu</code>, in
     * another order.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: of x[permutation]: l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ for square matrices; rows put back.
     *
     * @return the node
     */
    public Node lu() {
        return append("lu", new Attrs(), operands());
    }

    /**
     * The op make_complex: y = re + i · im, elementwise, broadcasting: complex64 of float32 and narrower floats, else
     * complex128.
     *
     * <p>The parts stay as they are, infinities, NaN and signs of zeros too, which re + im · i would not leave so.
     * PyTorch's <code>complex</code>, JAX's <code>lax.complex</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: d re = Re g, d im = Im g.
     *
     * <p>Of its operands, re is this node.
     *
     * @param im an operand
     * @return the node
     */
    public Node makeComplex(Node im) {
        return append("make_complex", new Attrs(), operands(im));
    }

    /**
     * The op map_lookup: The value under one key of a map that is kept as one tensor, keys in insertion order.
     *
     * <p>The leading axis is cut into <code>total_keys</code> equal parts, and y is the part <code>key_index</code>;
     * the axis stays.
     *
     * <p>Gradient: g on that part, 0 on the others.
     *
     * <p>Of its operands, x is this node.
     *
     * @param keyIndex which key, from 0, in insertion order
     * @param totalKeys how many keys the map has
     * @return the node
     */
    public Node mapLookup(long keyIndex, long totalKeys) {
        return append("map_lookup", new Attrs().with("key_index", keyIndex).with("total_keys", totalKeys), operands());
    }

    /**
     * The op matmul: y = a &#64; b, as NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j], and the axes before broadcast.
     *
     * <p>A 1-d operand counts as a row on the left and as a column on the right, and that axis is dropped from the
     * result. float16 adds up in float32; integers and bool are multiplied in their own dtype, as NumPy does.
     *
     * <p>Gradient: da = g &#64; bᴴ, db = aᴴ &#64; g, summed over batch axes that were broadcast.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node matmul(Node b) {
        return append("matmul", new Attrs(), operands(b));
    }

    /**
     * The op matrix_exp: y = exp x = 1 + x + x² / 2 + …, of the square matrices on the last two axes.
     *
     * <p>Scaled until its norm is below 1.1, approximated by Taylor's polynomial of degree 18, and squared as often:
     * the error is some units of rounding times the norm of y. A matrix that holds an infinity or NaN gives NaN for
     * itself alone. Integers give float64; float16 is computed in a wider float, and rounded once. To any order, the
     * gradient is an exponential again. P. Bader, S. Blanes, F. Casas, Computing the matrix exponential with an
     * optimized Taylor polynomial approximation (2019); its derivative by I. Najfeld, T. F. Havel (1995), and A. H.
     * Al-Mohy, N. J. Higham (2009). PyTorch's <code>linalg.matrix_exp</code>, JAX's and SciPy's
     * <code>linalg.expm</code>.
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
     * The op matrix_power: y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ the power
     * of the inverse.
     *
     * <p>By squares: some 2 log₂ k products. A negative power of a singular matrix is NaN, or, where rounding hides
     * that, very large. Integers give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's
     * and NumPy's <code>linalg.matrix_power</code>, of which the latter keep whole numbers whole.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, as the products give it.
     *
     * <p>Of its operands, x is this node.
     *
     * @param k the exponent; may be 0 or negative
     * @return the node
     */
    public Node matrixPower(long k) {
        return append("matrix_power", new Attrs().with("k", k), operands());
    }

    /**
     * The op matrix_rank: y = how many singular values are larger than max(m, n) ε times the largest: int64, [batch…,
     * m, n] → [batch…].
     *
     * <p>ε is that of x's dtype. A matrix that holds an infinity or NaN has rank 0. PyTorch's, JAX's and NumPy's
     * <code>linalg.matrix_rank</code> without a tolerance.
     *
     * <p>Since opset 2.
     *
     * @return the node
     */
    public Node matrixRank() {
        return append("matrix_rank", new Attrs(), operands());
    }

    /** What max takes beside what is required. */
    public static final class MaxOptions {
        private final Attrs attrs = new Attrs();

        private MaxOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public MaxOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op max: y = max x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
     *
     * <p>Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
     *
     * @return the node
     */
    public Node max() {
        return append("max", new Attrs(), operands());
    }

    /**
     * The op max: y = max x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
     *
     * <p>Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node max(Consumer<MaxOptions> options) {
        MaxOptions given = given(new MaxOptions(), options);
        return append("max", given.attrs, operands());
    }

    /** What maxPool1d takes beside what is required. */
    public static final class MaxPool1dOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool1dOptions() {}

        /**
         * Distance of the windows along each spatial axis; absent: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool1dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Added on both sides of each axis, at most half the kernel size; [0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public MaxPool1dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance of a window's taps along each axis; [1] unless stated.
         *
         * @param dilation the value
         * @return these options
         */
        public MaxPool1dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
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
     * The op max_pool1d: y[…, i] = the largest element of the window at i; NaN where it holds one. x [..., w]; padding
     * counts as −∞.
     *
     * <p>w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with <code>ceiling</code>, ⌈…⌉ + 1.
     * PyTorch's <code>max_pool1d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>; JAX's
     * <code>lax.reduce_window</code> with window_dilation, without a ceiling.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool1d(long... kernelSize) {
        return append("max_pool1d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op max_pool1d: y[…, i] = the largest element of the window at i; NaN where it holds one. x [..., w]; padding
     * counts as −∞.
     *
     * <p>w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with <code>ceiling</code>, ⌈…⌉ + 1.
     * PyTorch's <code>max_pool1d</code>, whose <code>ceil_mode</code> is <code>ceiling</code>; JAX's
     * <code>lax.reduce_window</code> with window_dilation, without a ceiling.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options states what is optional
     * @return the node
     */
    public Node maxPool1d(long[] kernelSize, Consumer<MaxPool1dOptions> options) {
        MaxPool1dOptions given = given(new MaxPool1dOptions(), options);
        return append("max_pool1d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** What maxPool2d takes beside what is required. */
    public static final class MaxPool2dOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool2dOptions() {}

        /**
         * Distance of the windows along each spatial axis; absent: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool2dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated.
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
     * The op max_pool2d: y[…, i, j] = the largest element of the window at (i, j); NaN where it holds one.
     *
     * <p>x [..., h, w]; padding counts as −∞. As PyTorch's max_pool2d.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool2d(long... kernelSize) {
        return append("max_pool2d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op max_pool2d: y[…, i, j] = the largest element of the window at (i, j); NaN where it holds one.
     *
     * <p>x [..., h, w]; padding counts as −∞. As PyTorch's max_pool2d.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options states what is optional
     * @return the node
     */
    public Node maxPool2d(long[] kernelSize, Consumer<MaxPool2dOptions> options) {
        MaxPool2dOptions given = given(new MaxPool2dOptions(), options);
        return append("max_pool2d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** What maxPool2dBack takes beside what is required. */
    public static final class MaxPool2dBackOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool2dBackOptions() {}

        /**
         * Distance of the windows along each spatial axis; absent: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool2dBackOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated.
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
     * The op max_pool2d_back: y[…, h, w] = Σ g[…, i, j] over the windows (i, j) of which x[…, h, w] is the first
     * maximum, in row-major order.
     *
     * <p>g [..., h', w'], x [..., h, w]: what is 0 elsewhere, and what max_pool2d gives back of g. A NaN counts as a
     * maximum.
     *
     * <p>Gradient: dg = the cotangent at max_pool2d_indices; none for x, of which the result is constant in pieces.
     *
     * <p>Of its operands, g is this node.
     *
     * @param x an operand
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool2dBack(Node x, long... kernelSize) {
        return append("max_pool2d_back", new Attrs().with("kernel_size", kernelSize), operands(x));
    }

    /**
     * The op max_pool2d_back: y[…, h, w] = Σ g[…, i, j] over the windows (i, j) of which x[…, h, w] is the first
     * maximum, in row-major order.
     *
     * <p>g [..., h', w'], x [..., h, w]: what is 0 elsewhere, and what max_pool2d gives back of g. A NaN counts as a
     * maximum.
     *
     * <p>Gradient: dg = the cotangent at max_pool2d_indices; none for x, of which the result is constant in pieces.
     *
     * <p>Of its operands, g is this node.
     *
     * @param x an operand
     * @param kernelSize extents of the windows along each spatial axis
     * @param options states what is optional
     * @return the node
     */
    public Node maxPool2dBack(Node x, long[] kernelSize, Consumer<MaxPool2dBackOptions> options) {
        MaxPool2dBackOptions given = given(new MaxPool2dBackOptions(), options);
        return append("max_pool2d_back", given.attrs.with("kernel_size", kernelSize), operands(x));
    }

    /** What maxPool2dIndices takes beside what is required. */
    public static final class MaxPool2dIndicesOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool2dIndicesOptions() {}

        /**
         * Distance of the windows along each spatial axis; absent: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool2dIndicesOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated.
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
     * The op max_pool2d_indices: y[…, i, j] = where the first maximum (in row-major order) of the window at (i, j)
     * lies: h · width + w.
     *
     * <p>int64, flat within its plane, as PyTorch's return_indices; a NaN counts as a maximum.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool2dIndices(long... kernelSize) {
        return append("max_pool2d_indices", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op max_pool2d_indices: y[…, i, j] = where the first maximum (in row-major order) of the window at (i, j)
     * lies: h · width + w.
     *
     * <p>int64, flat within its plane, as PyTorch's return_indices; a NaN counts as a maximum.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options states what is optional
     * @return the node
     */
    public Node maxPool2dIndices(long[] kernelSize, Consumer<MaxPool2dIndicesOptions> options) {
        MaxPool2dIndicesOptions given = given(new MaxPool2dIndicesOptions(), options);
        return append("max_pool2d_indices", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /** What maxPool3d takes beside what is required. */
    public static final class MaxPool3dOptions {
        private final Attrs attrs = new Attrs();

        private MaxPool3dOptions() {}

        /**
         * Distance of the windows along each spatial axis; absent: the kernel size.
         *
         * @param stride the value
         * @return these options
         */
        public MaxPool3dOptions stride(long... stride) {
            attrs.with("stride", stride);
            return this;
        }

        /**
         * Added on both sides of each axis, at most half the kernel size; [0, 0, 0] unless stated.
         *
         * @param padding the value
         * @return these options
         */
        public MaxPool3dOptions padding(long... padding) {
            attrs.with("padding", padding);
            return this;
        }

        /**
         * Distance of a window's taps along each axis; [1, 1, 1] unless stated.
         *
         * @param dilation the value
         * @return these options
         */
        public MaxPool3dOptions dilation(long... dilation) {
            attrs.with("dilation", dilation);
            return this;
        }

        /**
         * Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
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
     * The op max_pool3d: y[…, i, j, k] = the largest element of the window at (i, j, k); NaN where it holds one. x
     * [..., d, h, w].
     *
     * <p>Padding counts as −∞; extents as those of max_pool1d. A pool of planes that is dilated, or has a ceiling, is
     * one whose first kernel size is 1. PyTorch's <code>max_pool3d</code>, whose <code>ceil_mode</code> is
     * <code>ceiling</code>; JAX's <code>lax.reduce_window</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @return the node
     */
    public Node maxPool3d(long... kernelSize) {
        return append("max_pool3d", new Attrs().with("kernel_size", kernelSize), operands());
    }

    /**
     * The op max_pool3d: y[…, i, j, k] = the largest element of the window at (i, j, k); NaN where it holds one. x
     * [..., d, h, w].
     *
     * <p>Padding counts as −∞; extents as those of max_pool1d. A pool of planes that is dilated, or has a ceiling, is
     * one whose first kernel size is 1. PyTorch's <code>max_pool3d</code>, whose <code>ceil_mode</code> is
     * <code>ceiling</code>; JAX's <code>lax.reduce_window</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, added at the first maximum (in row-major order) of each window.
     *
     * <p>Of its operands, x is this node.
     *
     * @param kernelSize extents of the windows along each spatial axis
     * @param options states what is optional
     * @return the node
     */
    public Node maxPool3d(long[] kernelSize, Consumer<MaxPool3dOptions> options) {
        MaxPool3dOptions given = given(new MaxPool3dOptions(), options);
        return append("max_pool3d", given.attrs.with("kernel_size", kernelSize), operands());
    }

    /**
     * The op maximum: y = the larger of a and b, elementwise, broadcasting; NaN where either is NaN.
     *
     * <p>Gradient: da = g where a &gt; b, or a alone is NaN; g / 2 where a = b, or both are NaN; else 0; db likewise.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node maximum(Node b) {
        return append("maximum", new Attrs(), operands(b));
    }

    /** What mean takes beside what is required. */
    public static final class MeanOptions {
        private final Attrs attrs = new Attrs();

        private MeanOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public MeanOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op mean: y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64.
     *
     * <p>Gradient: g / n, broadcast back over the axes.
     *
     * @return the node
     */
    public Node mean() {
        return append("mean", new Attrs(), operands());
    }

    /**
     * The op mean: y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64.
     *
     * <p>Gradient: g / n, broadcast back over the axes.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node mean(Consumer<MeanOptions> options) {
        MeanOptions given = given(new MeanOptions(), options);
        return append("mean", given.attrs, operands());
    }

    /** What min takes beside what is required. */
    public static final class MinOptions {
        private final Attrs attrs = new Attrs();

        private MinOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public MinOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op min: y = min x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
     *
     * <p>Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
     *
     * @return the node
     */
    public Node min() {
        return append("min", new Attrs(), operands());
    }

    /**
     * The op min: y = min x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
     *
     * <p>Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node min(Consumer<MinOptions> options) {
        MinOptions given = given(new MinOptions(), options);
        return append("min", given.attrs, operands());
    }

    /**
     * The op minimum: y = the smaller of a and b, elementwise, broadcasting; NaN where either is NaN.
     *
     * <p>Gradient: da = g where a &lt; b, or a alone is NaN; g / 2 where a = b, or both are NaN; else 0; db likewise.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node minimum(Node b) {
        return append("minimum", new Attrs(), operands(b));
    }

    /** What mlpLayer takes beside what is required. */
    public static final class MlpLayerOptions {
        private final Attrs attrs = new Attrs();

        private MlpLayerOptions() {}

        /**
         * The op that is applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; none unless
         * stated.
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
     * <p>b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults; CJC's
     * <code>gelu</code> here is the tanh form: write that one as parts.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; w, dw = hᵀ &#64; x, db = Σ h over the rows.
     *
     * <p>Of its operands, x is this node.
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
     * <p>b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults; CJC's
     * <code>gelu</code> here is the tanh form: write that one as parts.
     *
     * <p>Gradient: with h = g · activation′: dx = h &#64; w, dw = hᵀ &#64; x, db = Σ h over the rows.
     *
     * <p>Of its operands, x is this node.
     *
     * @param w an operand
     * @param b an operand
     * @param options states what is optional
     * @return the node
     */
    public Node mlpLayer(Node w, Node b, Consumer<MlpLayerOptions> options) {
        MlpLayerOptions given = given(new MlpLayerOptions(), options);
        return append("mlp_layer", given.attrs, operands(w, b));
    }

    /**
     * The op mod: y = a − b · ⌊a / b⌋: the remainder, with the divisor's sign, as Python's % and NumPy's mod.
     *
     * <p>A float modulo 0 is NaN, an integer modulo 0 is 0.
     *
     * <p>Gradient: da = g, db = −g · ⌊a / b⌋.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node mod(Node b) {
        return append("mod", new Attrs(), operands(b));
    }

    /** What mseLoss takes beside what is required. */
    public static final class MseLossOptions {
        private final Attrs attrs = new Attrs();

        private MseLossOptions() {}

        /**
         * What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
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
     * The op mse_loss: loss = (x − y)², elementwise on equal shapes; then the mean.
     *
     * <p>Gradient: dx = g · 2 (x − y) / n, dy = −dx.
     *
     * <p>Of its operands, x is this node.
     *
     * @param y an operand
     * @return the node
     */
    public Node mseLoss(Node y) {
        return append("mse_loss", new Attrs(), operands(y));
    }

    /**
     * The op mse_loss: loss = (x − y)², elementwise on equal shapes; then the mean.
     *
     * <p>Gradient: dx = g · 2 (x − y) / n, dy = −dx.
     *
     * <p>Of its operands, x is this node.
     *
     * @param y an operand
     * @param options states what is optional
     * @return the node
     */
    public Node mseLoss(Node y, Consumer<MseLossOptions> options) {
        MseLossOptions given = given(new MseLossOptions(), options);
        return append("mse_loss", given.attrs, operands(y));
    }

    /**
     * The op mul: y = a · b, elementwise, broadcasting as NumPy.
     *
     * <p>Gradient: da = g · b, db = g · a.
     *
     * <p>Of its operands, a is this node.
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
     * <p>Of its operands, x is this node.
     *
     * @param scalar the constant
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
     * The op nonzero: The places where <code>mask</code> is true, in row-major order: int64 [k, rank], and how many
     * there are: int64 [].
     *
     * <p>k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
     * there are zeros. Two results, read through get_output. JAX's <code>nonzero</code> with a size, whose rows are its
     * tuple side by side; PyTorch's <code>nonzero</code>, which has as many rows as there are.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Of its operands, mask is this node.
     *
     * @param k how many entries there are to be
     * @return the node
     */
    public Node nonzero(long k) {
        return append("nonzero", new Attrs().with("k", k), operands());
    }

    /** What norm takes beside what is required. */
    public static final class NormOptions {
        private final Attrs attrs = new Attrs();

        private NormOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public NormOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op norm: y = √Σ x² over axes, the Euclidean norm, without overflow or underflow on the way. Integers give
     * float64.
     *
     * <p>At 0 the gradient is 0, the subgradient of least norm, and so is that of the gradient. An infinite element
     * gets g, with its sign. Where one is NaN, so are y and the gradient.
     *
     * <p>Gradient: g · x / y, and 0 where y = 0.
     *
     * @return the node
     */
    public Node norm() {
        return append("norm", new Attrs(), operands());
    }

    /**
     * The op norm: y = √Σ x² over axes, the Euclidean norm, without overflow or underflow on the way. Integers give
     * float64.
     *
     * <p>At 0 the gradient is 0, the subgradient of least norm, and so is that of the gradient. An infinite element
     * gets g, with its sign. Where one is NaN, so are y and the gradient.
     *
     * <p>Gradient: g · x / y, and 0 where y = 0.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node norm(Consumer<NormOptions> options) {
        NormOptions given = given(new NormOptions(), options);
        return append("norm", given.attrs, operands());
    }

    /**
     * The op not_equal: y = (a ≠ b), elementwise; NaN differs from everything.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node notEqual(Node b) {
        return append("not_equal", new Attrs(), operands(b));
    }

    /** What oneHot takes beside what is required. */
    public static final class OneHotOptions {
        private final Attrs attrs = new Attrs();

        private OneHotOptions() {}

        /**
         * The result's dtype; float64 unless stated.
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
     * The op one_hot: y[…, c] = 1 where indices[…] = c, else 0; a new last axis of extent <code>classes</code>. Indices
     * lie in [0, classes).
     *
     * <p>Of its operands, indices is this node.
     *
     * @param classes the number of classes
     * @return the node
     */
    public Node oneHot(long classes) {
        return append("one_hot", new Attrs().with("classes", classes), operands());
    }

    /**
     * The op one_hot: y[…, c] = 1 where indices[…] = c, else 0; a new last axis of extent <code>classes</code>. Indices
     * lie in [0, classes).
     *
     * <p>Of its operands, indices is this node.
     *
     * @param classes the number of classes
     * @param options states what is optional
     * @return the node
     */
    public Node oneHot(long classes, Consumer<OneHotOptions> options) {
        OneHotOptions given = given(new OneHotOptions(), options);
        return append("one_hot", given.attrs.with("classes", classes), operands());
    }

    /** What pad takes beside what is required. */
    public static final class PadOptions {
        private final Attrs attrs = new Attrs();

        private PadOptions() {}

        /**
         * The number around x; 0.0 unless stated.
         *
         * @param fill the value
         * @return these options
         */
        public PadOptions fill(Number fill) {
            attrs.with("fill", fill);
            return this;
        }

        /**
         * An infinity or NaN, in place of <code>fill</code>; of a float dtype; since opset 2; one of inf, -inf, nan.
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
     * <p>An infinity or NaN is stated by <code>fill_as</code>. PyTorch's <code>functional.pad</code> lists the last
     * axis first; JAX's and NumPy's <code>pad</code> have pairs, in the order here.
     *
     * <p>Gradient: g where x is.
     *
     * <p>Of its operands, x is this node.
     *
     * @param padWidth entries before and after, for one axis after the other
     * @return the node
     */
    public Node pad(long... padWidth) {
        return append("pad", new Attrs().with("pad_width", padWidth), operands());
    }

    /**
     * The op pad: y = x with <code>fill</code> around it: pad_width[2i] entries before and pad_width[2i + 1] after, on
     * each axis i.
     *
     * <p>An infinity or NaN is stated by <code>fill_as</code>. PyTorch's <code>functional.pad</code> lists the last
     * axis first; JAX's and NumPy's <code>pad</code> have pairs, in the order here.
     *
     * <p>Gradient: g where x is.
     *
     * <p>Of its operands, x is this node.
     *
     * @param padWidth entries before and after, for one axis after the other
     * @param options states what is optional
     * @return the node
     */
    public Node pad(long[] padWidth, Consumer<PadOptions> options) {
        PadOptions given = given(new PadOptions(), options);
        return append("pad", given.attrs.with("pad_width", padWidth), operands());
    }

    /** What pinv takes beside what is required. */
    public static final class PinvOptions {
        private final Attrs attrs = new Attrs();

        private PinvOptions() {}

        /**
         * Of the largest singular value, the part up to which others are taken for 0; absent: max(m, n) ε.
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
     * The op pinv: y = x⁺, the pseudoinverse of Moore and Penrose: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without those
     * s that are 0.
     *
     * <p>x [batch…, m, n], y [batch…, n, m]. Singular values up to <code>rcond</code> times the largest are taken for
     * 0: by default max(m, n) ε. The gradient is that at constant rank, which is exact where nothing but zeros is cut,
     * equal singular values or not; of larger ones that are cut, it is off by their part of those that are kept. Where
     * the rank changes, the pseudoinverse jumps. A matrix that holds an infinity or NaN, or for which LAPACK finds no
     * answer, gives NaN for itself alone. Integers give float64; float16 is computed in a wider float, and rounded
     * once. G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
     * variables separate (1973), eq. 4.12. PyTorch's <code>linalg.pinv</code> (rtol); JAX's and NumPy's have other
     * defaults.
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
     * The op pinv: y = x⁺, the pseudoinverse of Moore and Penrose: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without those
     * s that are 0.
     *
     * <p>x [batch…, m, n], y [batch…, n, m]. Singular values up to <code>rcond</code> times the largest are taken for
     * 0: by default max(m, n) ε. The gradient is that at constant rank, which is exact where nothing but zeros is cut,
     * equal singular values or not; of larger ones that are cut, it is off by their part of those that are kept. Where
     * the rank changes, the pseudoinverse jumps. A matrix that holds an infinity or NaN, or for which LAPACK finds no
     * answer, gives NaN for itself alone. Integers give float64; float16 is computed in a wider float, and rounded
     * once. G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
     * variables separate (1973), eq. 4.12. PyTorch's <code>linalg.pinv</code> (rtol); JAX's and NumPy's have other
     * defaults.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
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
     * <p>±∞ at 0, −1, −2, …, with the sign that it has to the right of 0. To 10 units; for even orders, near the zeros
     * below 0, to 10 units of what the nearest poles add up to. Values of less than 1e-307 · n! are inaccurate or 0.
     *
     * <p>Orders go to 170, whose factorial is the largest in a float64; <code>polygamma</code> of order 170 has no
     * derivative.
     *
     * <p>Gradient: g · polygamma(x, order + 1).
     *
     * <p>Of its operands, x is this node.
     *
     * @param order which derivative of digamma: 0 to 170
     * @return the node
     */
    public Node polygamma(long order) {
        return append("polygamma", new Attrs().with("order", order), operands());
    }

    /** What pow takes beside what is required. */
    public static final class PowOptions {
        private final Attrs attrs = new Attrs();
        private Node b;

        private PowOptions() {}

        /**
         * An operand.
         *
         * @param b a node of the same graph
         * @return these options
         */
        public PowOptions b(Node b) {
            this.b = b;
            return this;
        }

        /**
         * The exponent, where there is no operand b.
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
     * The op pow: y = aᵇ, broadcasting; with one operand y = a^exponent, which is <code>pow_scalar</code>. 0⁰ = 1.
     *
     * <p>A negative a to a fractional power is NaN, and so is its derivative by b. By b, the derivative is 0 where a =
     * 0 and b ≥ 0, or where a = ∞ and b &lt; 0. Powers of integers are integers: they wrap around as NumPy's, and to a
     * negative exponent they are cut off towards zero (2⁻¹ → 0, as CuPy and PyTorch have it, where NumPy refuses) with
     * 0⁻¹ → 0.
     *
     * <p>Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
     *
     * @return the node
     */
    public Node pow() {
        return append("pow", new Attrs(), operands());
    }

    /**
     * The op pow: y = aᵇ, broadcasting; with one operand y = a^exponent, which is <code>pow_scalar</code>. 0⁰ = 1.
     *
     * <p>A negative a to a fractional power is NaN, and so is its derivative by b. By b, the derivative is 0 where a =
     * 0 and b ≥ 0, or where a = ∞ and b &lt; 0. Powers of integers are integers: they wrap around as NumPy's, and to a
     * negative exponent they are cut off towards zero (2⁻¹ → 0, as CuPy and PyTorch have it, where NumPy refuses) with
     * 0⁻¹ → 0.
     *
     * <p>Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand; null where it is absent
     * @return the node
     */
    public Node pow(Node b) {
        return append("pow", new Attrs(), operands(b));
    }

    /**
     * The op pow: y = aᵇ, broadcasting; with one operand y = a^exponent, which is <code>pow_scalar</code>. 0⁰ = 1.
     *
     * <p>A negative a to a fractional power is NaN, and so is its derivative by b. By b, the derivative is 0 where a =
     * 0 and b ≥ 0, or where a = ∞ and b &lt; 0. Powers of integers are integers: they wrap around as NumPy's, and to a
     * negative exponent they are cut off towards zero (2⁻¹ → 0, as CuPy and PyTorch have it, where NumPy refuses) with
     * 0⁻¹ → 0.
     *
     * <p>Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
     *
     * <p>Of its operands, a is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node pow(Consumer<PowOptions> options) {
        PowOptions given = given(new PowOptions(), options);
        return append("pow", given.attrs, operands(given.b));
    }

    /**
     * The op pow_scalar: y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.
     *
     * <p>Of a complex x, exp(exponent · log x), with the cut of <code>log</code>.
     *
     * <p>Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.
     *
     * <p>Of its operands, x is this node.
     *
     * @param exponent the exponent
     * @return the node
     */
    public Node powScalar(double exponent) {
        return append("pow_scalar", new Attrs().with("exponent", exponent), operands());
    }

    /** What prod takes beside what is required. */
    public static final class ProdOptions {
        private final Attrs attrs = new Attrs();

        private ProdOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public ProdOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op prod: y = Π x over axes; 1 over nothing. Integers and bool multiply in int64, float16 in float32.
     *
     * <p>The gradient is that of a tree of products, exact whatever the number of zeros, and so are those of higher
     * order.
     *
     * <p>Gradient: g · (product of all other elements).
     *
     * @return the node
     */
    public Node prod() {
        return append("prod", new Attrs(), operands());
    }

    /**
     * The op prod: y = Π x over axes; 1 over nothing. Integers and bool multiply in int64, float16 in float32.
     *
     * <p>The gradient is that of a tree of products, exact whatever the number of zeros, and so are those of higher
     * order.
     *
     * <p>Gradient: g · (product of all other elements).
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node prod(Consumer<ProdOptions> options) {
        ProdOptions given = given(new ProdOptions(), options);
        return append("prod", given.attrs, operands());
    }

    /**
     * The op qr: q, r with x = q r: the columns of q orthonormal, r upper triangular; reduced.
     *
     * <p>x [batch…, m, n], q [batch…, m, k], r [batch…, k, n], k = min(m, n). Two results, read through get_output. The
     * signs of r's diagonal are as LAPACK leaves them, of a row of r together with the column of q: a function has a
     * meaning only if it does not depend on them. The gradient holds where the columns of x are independent; where they
     * are not, it is infinite or NaN. Of fewer rows than columns there are values, and no gradient:
     * <code>not_differentiable</code>. A matrix that holds an infinity or NaN gives NaN for itself alone. Integers give
     * float64; float16 is computed in a wider float, and rounded once. S. F. Walter, L. Lehmann, Algorithmic
     * differentiation of linear algebra functions with application in optimum experimental design, arXiv:1001.1654
     * (2010). PyTorch's and JAX's <code>linalg.qr</code>, reduced.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none where rows &lt;
     * columns.
     *
     * @return the node
     */
    public Node qr() {
        return append("qr", new Attrs(), operands());
    }

    /**
     * The op random_bernoulli: y = uniform &lt; p, of p's shape: true with probability p. The uniform numbers are of
     * p's dtype.
     *
     * <p>As <code>jax.random.bernoulli</code>. PyTorch's <code>bernoulli</code> has floats of another generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param p an operand
     * @return the node
     */
    public Node randomBernoulli(Node p) {
        return append("random_bernoulli", new Attrs(), operands(p));
    }

    /** What randomBits takes beside what is required. */
    public static final class RandomBitsOptions {
        private final Attrs attrs = new Attrs();

        private RandomBitsOptions() {}

        /**
         * The result's dtype; one of uint32; uint32 unless stated.
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
     * The op random_bits: y = 32 random bits an element: the exclusive or of both words of counter i, row-major. As
     * <code>jax.random.bits</code>.
     *
     * <p>PyTorch's <code>randint</code> has bits of another generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param shape the result's shape
     * @return the node
     */
    public Node randomBits(long... shape) {
        return append("random_bits", new Attrs().with("shape", shape), operands());
    }

    /**
     * The op random_bits: y = 32 random bits an element: the exclusive or of both words of counter i, row-major. As
     * <code>jax.random.bits</code>.
     *
     * <p>PyTorch's <code>randint</code> has bits of another generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param shape the result's shape
     * @param options states what is optional
     * @return the node
     */
    public Node randomBits(long[] shape, Consumer<RandomBitsOptions> options) {
        RandomBitsOptions given = given(new RandomBitsOptions(), options);
        return append("random_bits", given.attrs.with("shape", shape), operands());
    }

    /** What randomCategorical takes beside what is required. */
    public static final class RandomCategoricalOptions {
        private final Attrs attrs = new Attrs();

        private RandomCategoricalOptions() {}

        /**
         * The axis of the categories; -1 unless stated.
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
     * The op random_categorical: y = argmax(logits + gumbel) along <code>axis</code>, int64: i with a probability that
     * goes as exp(logits[i]).
     *
     * <p>As <code>jax.random.categorical</code>. PyTorch's <code>multinomial</code> takes weights, and has another
     * generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param logits an operand
     * @return the node
     */
    public Node randomCategorical(Node logits) {
        return append("random_categorical", new Attrs(), operands(logits));
    }

    /**
     * The op random_categorical: y = argmax(logits + gumbel) along <code>axis</code>, int64: i with a probability that
     * goes as exp(logits[i]).
     *
     * <p>As <code>jax.random.categorical</code>. PyTorch's <code>multinomial</code> takes weights, and has another
     * generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param logits an operand
     * @param options states what is optional
     * @return the node
     */
    public Node randomCategorical(Node logits, Consumer<RandomCategoricalOptions> options) {
        RandomCategoricalOptions given = given(new RandomCategoricalOptions(), options);
        return append("random_categorical", given.attrs, operands(logits));
    }

    /**
     * The op random_exponential: y = −log1p(−u), u uniform in [0, 1): exponential numbers of mean 1. As
     * <code>jax.random.exponential</code>.
     *
     * <p>PyTorch's <code>exponential_</code> has numbers of another generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param shape the result's shape
     * @param dtype the result's dtype; one of float32, float64
     * @return the node
     */
    public Node randomExponential(long[] shape, DType dtype) {
        return append("random_exponential", new Attrs().with("shape", shape).with("dtype", dtype), operands());
    }

    /**
     * The op random_fold_in: key = a new key [2] for each number: the words of counter (0, number mod 2³²). As
     * <code>jax.random.fold_in</code>.
     *
     * <p>PyTorch has no keys: a <code>Generator</code> each.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param number an operand
     * @return the node
     */
    public Node randomFoldIn(Node number) {
        return append("random_fold_in", new Attrs(), operands(number));
    }

    /**
     * The op random_gumbel: y = −log(−log u), u uniform in [0, 1), its 0 replaced by the least normal number. As
     * <code>jax.random.gumbel</code>.
     *
     * <p>PyTorch's <code>distributions.Gumbel</code> has numbers of another generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param shape the result's shape
     * @param dtype the result's dtype; one of float32, float64
     * @return the node
     */
    public Node randomGumbel(long[] shape, DType dtype) {
        return append("random_gumbel", new Attrs().with("shape", shape).with("dtype", dtype), operands());
    }

    /**
     * The op random_key: key = (seed ≫ 32, seed mod 2³²): uint32 [2] from an int64 []. As
     * <code>jax.random.key_data(jax.random.key(seed))</code>.
     *
     * <p>PyTorch's <code>manual_seed</code> begins another sequence, which goes on by itself.
     *
     * <p>Since opset 2.
     *
     * @return the node
     */
    public Node randomKey() {
        return append("random_key", new Attrs(), operands());
    }

    /**
     * The op random_normal: y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. As
     * <code>jax.random.normal</code>, to 32 ulp.
     *
     * <p>PyTorch's <code>randn</code> has numbers of another generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param shape the result's shape
     * @param dtype the result's dtype; one of float32, float64
     * @return the node
     */
    public Node randomNormal(long[] shape, DType dtype) {
        return append("random_normal", new Attrs().with("shape", shape).with("dtype", dtype), operands());
    }

    /**
     * The op random_permutation: y = 0 … k−1 in random order, int64 [k]: a stable argsort of k numbers of 64 random
     * bits, unsigned.
     *
     * <p><code>jax.random.permutation</code> has another rule, and PyTorch's <code>randperm</code> another generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param k how many numbers
     * @return the node
     */
    public Node randomPermutation(long k) {
        return append("random_permutation", new Attrs().with("k", k), operands());
    }

    /**
     * The op random_split: keys = k new keys [k, 2], each of its own sequence: the words of the counters 0 … k−1. As
     * <code>jax.random.split</code>.
     *
     * <p>PyTorch has no keys: a <code>Generator</code> each.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param k how many keys
     * @return the node
     */
    public Node randomSplit(long k) {
        return append("random_split", new Attrs().with("k", k), operands());
    }

    /**
     * The op random_uniform: y = uniform numbers in [0, 1): 23 random bits (of float64, 52), over 2²³ (2⁵²). As
     * <code>jax.random.uniform</code>.
     *
     * <p>PyTorch's <code>rand</code> has numbers of another generator.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, key is this node.
     *
     * @param shape the result's shape
     * @param dtype the result's dtype; one of float32, float64
     * @return the node
     */
    public Node randomUniform(long[] shape, DType dtype) {
        return append("random_uniform", new Attrs().with("shape", shape).with("dtype", dtype), operands());
    }

    /**
     * The op real: y = Re x; a real x itself. PyTorch's, JAX's and NumPy's <code>real</code>.
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
     * The op reciprocal: y = 1 / x; integers give floats, as <code>div</code>.
     *
     * <p>Gradient: −g · y².
     *
     * @return the node
     */
    public Node reciprocal() {
        return append("reciprocal", new Attrs(), operands());
    }

    /** What relu takes beside what is required. */
    public static final class ReluOptions {
        private final Attrs attrs = new Attrs();

        private ReluOptions() {}

        /**
         * The derivative at 0; 0.0 unless stated.
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
     * The op relu: y = max(x, 0). The derivative at 0 is <code>at_zero</code>; some systems let the gradient pass
     * there.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, g · at_zero where x = 0, else 0.
     *
     * @return the node
     */
    public Node relu() {
        return append("relu", new Attrs(), operands());
    }

    /**
     * The op relu: y = max(x, 0). The derivative at 0 is <code>at_zero</code>; some systems let the gradient pass
     * there.
     *
     * <p>Gradient: g where x &gt; 0 or NaN, g · at_zero where x = 0, else 0.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node relu(Consumer<ReluOptions> options) {
        ReluOptions given = given(new ReluOptions(), options);
        return append("relu", given.attrs, operands());
    }

    /**
     * The op rem: y = a − b · (a / b without its fraction): C's % and fmod, with a's sign. <code>mod</code> has b's.
     *
     * <p>A float by 0 gives NaN, an integer 0. PyTorch's <code>fmod</code>, JAX's <code>lax.rem</code>, which gives a
     * for an integer by 0.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: da = g, db = −g · (a / b without its fraction).
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node rem_(Node b) {
        return append("rem", new Attrs(), operands(b));
    }

    /** What reshape takes beside what is required. */
    public static final class ReshapeOptions {
        private final Attrs attrs = new Attrs();

        private ReshapeOptions() {}

        /**
         * X's shape, checked where given.
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
     * The op reshape: y holds x's elements, in row-major order, in another shape; one extent may be −1 and follows from
     * the others.
     *
     * <p>An absent or empty <code>shape</code> makes a 0-d tensor. <code>original_shape</code>, where given, must be
     * x's shape.
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param shape the result's shape; one -1 is inferred; [] unless stated
     * @return the node
     */
    public Node reshape(long... shape) {
        return append("reshape", new Attrs().with("shape", shape), operands());
    }

    /**
     * The op reshape: y holds x's elements, in row-major order, in another shape; one extent may be −1 and follows from
     * the others.
     *
     * <p>An absent or empty <code>shape</code> makes a 0-d tensor. <code>original_shape</code>, where given, must be
     * x's shape.
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param shape the result's shape; one -1 is inferred; [] unless stated
     * @param options states what is optional
     * @return the node
     */
    public Node reshape(long[] shape, Consumer<ReshapeOptions> options) {
        ReshapeOptions given = given(new ReshapeOptions(), options);
        return append("reshape", given.attrs.with("shape", shape), operands());
    }

    /** What resize takes beside what is required. */
    public static final class ResizeOptions {
        private final Attrs attrs = new Attrs();

        private ResizeOptions() {}

        /**
         * The axes that have them; absent: the last ones.
         *
         * @param axes the value
         * @return these options
         */
        public ResizeOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * How entries are found; one of nearest, linear, cubic; linear unless stated.
         *
         * @param method the value
         * @return these options
         */
        public ResizeOptions method(String method) {
            attrs.with("method", method);
            return this;
        }

        /**
         * Whether all of what shrinks counts; of linear and cubic; false unless stated.
         *
         * @param antialias the value
         * @return these options
         */
        public ResizeOptions antialias(boolean antialias) {
            attrs.with("antialias", antialias);
            return this;
        }

        /**
         * Whether the middles of the first and last entries stay; without antialias; false unless stated.
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
     * The op resize: y = x with other extents on some axes, each new entry interpolated from those around its place.
     *
     * <p>The middle of new entry i lies at (i + ½) · extent / size − ½; with <code>corners</code>, at i · (extent − 1)
     * / (size − 1). <code>nearest</code> takes the entry that is nearest, <code>linear</code> two, <code>cubic</code>
     * four, by Keys's kernel with a = −0.75; beyond an end there is what is at the end. With <code>antialias</code>,
     * kernels are wider where the tensor shrinks, a is −0.5, and what is beyond an end does not count. PyTorch's
     * <code>interpolate</code> with modes nearest-exact, linear, bilinear, trilinear and bicubic, and align_corners;
     * JAX's <code>image.resize</code>, whose cubic has a = −0.5 always, and which has no corners.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, each entry's shares added where they were read.
     *
     * <p>Of its operands, x is this node.
     *
     * @param sizes the new extents
     * @return the node
     */
    public Node resize(long... sizes) {
        return append("resize", new Attrs().with("sizes", sizes), operands());
    }

    /**
     * The op resize: y = x with other extents on some axes, each new entry interpolated from those around its place.
     *
     * <p>The middle of new entry i lies at (i + ½) · extent / size − ½; with <code>corners</code>, at i · (extent − 1)
     * / (size − 1). <code>nearest</code> takes the entry that is nearest, <code>linear</code> two, <code>cubic</code>
     * four, by Keys's kernel with a = −0.75; beyond an end there is what is at the end. With <code>antialias</code>,
     * kernels are wider where the tensor shrinks, a is −0.5, and what is beyond an end does not count. PyTorch's
     * <code>interpolate</code> with modes nearest-exact, linear, bilinear, trilinear and bicubic, and align_corners;
     * JAX's <code>image.resize</code>, whose cubic has a = −0.5 always, and which has no corners.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g, each entry's shares added where they were read.
     *
     * <p>Of its operands, x is this node.
     *
     * @param sizes the new extents
     * @param options states what is optional
     * @return the node
     */
    public Node resize(long[] sizes, Consumer<ResizeOptions> options) {
        ResizeOptions given = given(new ResizeOptions(), options);
        return append("resize", given.attrs.with("sizes", sizes), operands());
    }

    /** What rfft takes beside what is required. */
    public static final class RfftOptions {
        private final Attrs attrs = new Attrs();

        private RfftOptions() {}

        /**
         * The axes to transform; absent: the last.
         *
         * @param axes the value
         * @return these options
         */
        public RfftOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
         *
         * @param sizes the value
         * @return these options
         */
        public RfftOptions sizes(long... sizes) {
            attrs.with("sizes", sizes);
            return this;
        }

        /**
         * Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
         * ortho, forward; backward unless stated.
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
     * The op rfft: The first ⌊n / 2⌋ + 1 entries of <code>fft</code> on the last of <code>axes</code>, of a real x: the
     * others are their conjugates.
     *
     * <p>float16 gives complex64, integers complex128. <code>norm</code> is that of <code>fft</code>. PyTorch's, JAX's
     * and NumPy's <code>rfft</code>, and <code>rfft2</code> and <code>rfftn</code> by several axes.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: the real part of ifft(g) without its division, g filled up with zeros.
     *
     * @return the node
     */
    public Node rfft() {
        return append("rfft", new Attrs(), operands());
    }

    /**
     * The op rfft: The first ⌊n / 2⌋ + 1 entries of <code>fft</code> on the last of <code>axes</code>, of a real x: the
     * others are their conjugates.
     *
     * <p>float16 gives complex64, integers complex128. <code>norm</code> is that of <code>fft</code>. PyTorch's, JAX's
     * and NumPy's <code>rfft</code>, and <code>rfft2</code> and <code>rfftn</code> by several axes.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: the real part of ifft(g) without its division, g filled up with zeros.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node rfft(Consumer<RfftOptions> options) {
        RfftOptions given = given(new RfftOptions(), options);
        return append("rfft", given.attrs, operands());
    }

    /** What rmsNorm takes beside what is required. */
    public static final class RmsNormOptions {
        private final Attrs attrs = new Attrs();
        private Node weight;

        private RmsNormOptions() {}

        /**
         * An operand.
         *
         * @param weight a node of the same graph
         * @return these options
         */
        public RmsNormOptions weight(Node weight) {
            this.weight = weight;
            return this;
        }

        /**
         * Axes to normalise over; [-1] unless stated.
         *
         * @param axes the value
         * @return these options
         */
        public RmsNormOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Added to the variance or mean square; positive; 1e-05 unless stated.
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
     * The op rms_norm: y = x / √(mean x² + eps) · weight, the mean over <code>axes</code>; weight has x's extents
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
     * The op rms_norm: y = x / √(mean x² + eps) · weight, the mean over <code>axes</code>; weight has x's extents
     * there, in ascending order.
     *
     * <p>B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
     *
     * <p>Of its operands, x is this node.
     *
     * @param weight an operand; null where it is absent
     * @return the node
     */
    public Node rmsNorm(Node weight) {
        return append("rms_norm", new Attrs(), operands(weight));
    }

    /**
     * The op rms_norm: y = x / √(mean x² + eps) · weight, the mean over <code>axes</code>; weight has x's extents
     * there, in ascending order.
     *
     * <p>B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
     *
     * <p>Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node rmsNorm(Consumer<RmsNormOptions> options) {
        RmsNormOptions given = given(new RmsNormOptions(), options);
        return append("rms_norm", given.attrs, operands(given.weight));
    }

    /** What roll takes beside what is required. */
    public static final class RollOptions {
        private final Attrs attrs = new Attrs();

        private RollOptions() {}

        /**
         * The axes to move along; absent: the flattened tensor.
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
     * The op roll: y[(i + shift) mod n] = x[i] on each of <code>axes</code>; without axes, on the flattened tensor.
     *
     * <p>As many shifts as axes, and one without axes. Negative shifts go towards the front.
     *
     * <p>Gradient: g, rolled back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param shifts how far to move, for each axis
     * @return the node
     */
    public Node roll(long... shifts) {
        return append("roll", new Attrs().with("shifts", shifts), operands());
    }

    /**
     * The op roll: y[(i + shift) mod n] = x[i] on each of <code>axes</code>; without axes, on the flattened tensor.
     *
     * <p>As many shifts as axes, and one without axes. Negative shifts go towards the front.
     *
     * <p>Gradient: g, rolled back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param shifts how far to move, for each axis
     * @param options states what is optional
     * @return the node
     */
    public Node roll(long[] shifts, Consumer<RollOptions> options) {
        RollOptions given = given(new RollOptions(), options);
        return append("roll", given.attrs.with("shifts", shifts), operands());
    }

    /**
     * The op round: y = x rounded to the nearest whole number, halves to the even one: 0.5 → 0, 1.5 → 2.
     *
     * @return the node
     */
    public Node round() {
        return append("round", new Attrs(), operands());
    }

    /**
     * The op rsqrt: y = 1 / √x, NaN for x &lt; 0.
     *
     * <p>Gradient: −g · y³ / 2.
     *
     * @return the node
     */
    public Node rsqrt() {
        return append("rsqrt", new Attrs(), operands());
    }

    /** What scatterAdd takes beside what is required. */
    public static final class ScatterAddOptions {
        private final Attrs attrs = new Attrs();

        private ScatterAddOptions() {}

        /**
         * The axis that is indexed; 0 unless stated.
         *
         * @param axis the value
         * @return these options
         */
        public ScatterAddOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
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
     * The op scatter_add: y = x, and then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0, and alike for the
     * others.
     *
     * <p><code>index</code> and <code>updates</code> have the same shape, of x's rank, and may be smaller than x off
     * the axis. Repeated indices accumulate. The adjoint of <code>gather</code>. Indices lie in [0, extent); with
     * <code>from_end</code>, negative ones count from the end. PyTorch's <code>scatter_add</code>, which takes no
     * negative index; JAX's <code>x.at[…].add</code>, which does, and drops those outside.
     *
     * <p>Gradient: dx = g, d updates = gather(g, index); none for index.
     *
     * <p>Of its operands, x is this node.
     *
     * @param index an operand
     * @param updates an operand
     * @return the node
     */
    public Node scatterAdd(Node index, Node updates) {
        return append("scatter_add", new Attrs(), operands(index, updates));
    }

    /**
     * The op scatter_add: y = x, and then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0, and alike for the
     * others.
     *
     * <p><code>index</code> and <code>updates</code> have the same shape, of x's rank, and may be smaller than x off
     * the axis. Repeated indices accumulate. The adjoint of <code>gather</code>. Indices lie in [0, extent); with
     * <code>from_end</code>, negative ones count from the end. PyTorch's <code>scatter_add</code>, which takes no
     * negative index; JAX's <code>x.at[…].add</code>, which does, and drops those outside.
     *
     * <p>Gradient: dx = g, d updates = gather(g, index); none for index.
     *
     * <p>Of its operands, x is this node.
     *
     * @param index an operand
     * @param updates an operand
     * @param options states what is optional
     * @return the node
     */
    public Node scatterAdd(Node index, Node updates, Consumer<ScatterAddOptions> options) {
        ScatterAddOptions given = given(new ScatterAddOptions(), options);
        return append("scatter_add", given.attrs, operands(index, updates));
    }

    /**
     * The op segment_max: y[s, …] = the largest x[i, …] of the rows i with segment_ids[i] = s; NaN if one is.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
     * equally. A segment without rows is −∞, or the least number of an integer dtype. JAX's
     * <code>ops.segment_max</code>; PyTorch's <code>scatter_reduce</code> with amax, whose ties share, too, which gives
     * segments without rows what was there.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / k to each of the k rows equal to y, or NaN where y is; zero to the others.
     *
     * <p>Of its operands, x is this node.
     *
     * @param segmentIds an operand
     * @param segments how many segments there are
     * @return the node
     */
    public Node segmentMax(Node segmentIds, long segments) {
        return append("segment_max", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /**
     * The op segment_mean: y[s, …] = the mean of x[i, …] over the rows i with segment_ids[i] = s; NaN where there is
     * none.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers give float64;
     * float16 adds up in float32. PyTorch's <code>scatter_reduce</code> with mean; JAX has none.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx[i, …] = g[segment_ids[i], …] / (rows of the segment); none for segment_ids.
     *
     * <p>Of its operands, x is this node.
     *
     * @param segmentIds an operand
     * @param segments how many segments there are
     * @return the node
     */
    public Node segmentMean(Node segmentIds, long segments) {
        return append("segment_mean", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /**
     * The op segment_min: y[s, …] = the smallest x[i, …] of the rows i with segment_ids[i] = s; NaN if one is.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
     * equally. A segment without rows is ∞, or the greatest number of an integer dtype. JAX's
     * <code>ops.segment_min</code>; PyTorch's <code>scatter_reduce</code> with amin, whose ties share, too, which gives
     * segments without rows what was there.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g / k to each of the k rows equal to y, or NaN where y is; zero to the others.
     *
     * <p>Of its operands, x is this node.
     *
     * @param segmentIds an operand
     * @param segments how many segments there are
     * @return the node
     */
    public Node segmentMin(Node segmentIds, long segments) {
        return append("segment_min", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /**
     * The op segment_prod: y[s, …] = Π x[i, …] over the rows i with segment_ids[i] = s; 1 where there is none.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool multiply in
     * int64, float16 in float32. The gradient is exact whatever the number of zeros, and so are those of higher order.
     * JAX's <code>ops.segment_prod</code>, which has no gradient; PyTorch's <code>scatter_reduce</code> with prod.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g[segment_ids[i], …] · (product of the other rows of the segment); none for segment_ids.
     *
     * <p>Of its operands, x is this node.
     *
     * @param segmentIds an operand
     * @param segments how many segments there are
     * @return the node
     */
    public Node segmentProd(Node segmentIds, long segments) {
        return append("segment_prod", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /**
     * The op segment_sum: y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 where there is none.
     *
     * <p>x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool add up in
     * int64, float16 in float32.
     *
     * <p>Gradient: dx[i, …] = g[segment_ids[i], …]; none for segment_ids.
     *
     * <p>Of its operands, x is this node.
     *
     * @param segmentIds an operand
     * @param segments how many segments there are
     * @return the node
     */
    public Node segmentSum(Node segmentIds, long segments) {
        return append("segment_sum", new Attrs().with("segments", segments), operands(segmentIds));
    }

    /** What select takes beside what is required. */
    public static final class SelectOptions {
        private final Attrs attrs = new Attrs();

        private SelectOptions() {}

        /**
         * The axis that is read at one position; 0 unless stated.
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
     * <p>A negative index counts from the end. As PyTorch's select; <code>gather</code> reads at many indices.
     *
     * <p>Gradient: g at the index, 0 elsewhere.
     *
     * <p>Of its operands, x is this node.
     *
     * @param index the position to read at
     * @return the node
     */
    public Node select(long index) {
        return append("select", new Attrs().with("index", index), operands());
    }

    /**
     * The op select: y = x at one <code>index</code> along <code>axis</code>, without that axis: x[index], x[:, index],
     * …
     *
     * <p>A negative index counts from the end. As PyTorch's select; <code>gather</code> reads at many indices.
     *
     * <p>Gradient: g at the index, 0 elsewhere.
     *
     * <p>Of its operands, x is this node.
     *
     * @param index the position to read at
     * @param options states what is optional
     * @return the node
     */
    public Node select(long index, Consumer<SelectOptions> options) {
        SelectOptions given = given(new SelectOptions(), options);
        return append("select", given.attrs.with("index", index), operands());
    }

    /**
     * The op selu: y = 1.0507… · elu(x, alpha = 1.6732…): keeps mean 0 and variance 1 of what it is applied to.
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
     * The op sigmoid: y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. Of a complex x, by the
     * same formula.
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
     * The op sinc: y = sin(πx) / πx, and 1 at 0: NumPy's, PyTorch's and JAX's. 0 at whole numbers, exactly, and at
     * infinity.
     *
     * <p>To 4 units, next to whole numbers as well, where the libraries' lose all digits; there the derivative is (−1)ˣ
     * / x.
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

    /** What slice takes beside what is required. */
    public static final class SliceOptions {
        private final Attrs attrs = new Attrs();

        private SliceOptions() {}

        /**
         * First position on each axis; absent: 0.
         *
         * @param starts the value
         * @return these options
         */
        public SliceOptions starts(long... starts) {
            attrs.with("starts", starts);
            return this;
        }

        /**
         * The position to stop before, on each axis; absent: the extent.
         *
         * @param stops the value
         * @return these options
         */
        public SliceOptions stops(long... stops) {
            attrs.with("stops", stops);
            return this;
        }

        /**
         * Distance between positions on each axis; absent: 1.
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
     * <p>A list may be shorter: the axes that it does not reach are whole, or every position of theirs is read. Bounds
     * as NumPy's: negative ones count from the end, and beyond an end means at that end. Steps are at least 1.
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
     * <p>A list may be shorter: the axes that it does not reach are whole, or every position of theirs is read. Bounds
     * as NumPy's: negative ones count from the end, and beyond an end means at that end. Steps are at least 1.
     *
     * <p>Gradient: g at the positions that were read, 0 elsewhere.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node slice(Consumer<SliceOptions> options) {
        SliceOptions given = given(new SliceOptions(), options);
        return append("slice", given.attrs, operands());
    }

    /**
     * The op slice_at: y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], s being <code>starts</code>: int64 [rank],
     * which are computed.
     *
     * <p>Each is moved into [0, extent − size], negative ones too, so that there are always as many entries. JAX's
     * <code>lax.dynamic_slice</code>, which first counts negative starts from the end; PyTorch's x.narrow takes a start
     * on one axis.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: g where the box was, 0 elsewhere; none for starts.
     *
     * <p>Of its operands, x is this node.
     *
     * @param starts an operand
     * @param sizes extents of the box, one for each axis
     * @return the node
     */
    public Node sliceAt(Node starts, long... sizes) {
        return append("slice_at", new Attrs().with("sizes", sizes), operands(starts));
    }

    /**
     * The op slogdet: sign, log|det x| of the matrices on the last two axes: [batch…, n, n] → [batch…] twice; det x =
     * sign · exp(log).
     *
     * <p>The logarithm neither overflows nor underflows where the determinant does. A singular matrix has sign 0 and
     * the logarithm −∞, and its gradient is NaN, as that of the inverse; the others of its batch are as if it were not
     * there. The sign carries no gradient. Of a complex matrix it is complex, det x / |det x|, and the logarithm real.
     * Several results, read through get_output. Integers give float64; float16 is computed in a wider float, and
     * rounded once.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
     *
     * @return the node
     */
    public Node slogdet() {
        return append("slogdet", new Attrs(), operands());
    }

    /** What softmax takes beside what is required. */
    public static final class SoftmaxOptions {
        private final Attrs attrs = new Attrs();

        private SoftmaxOptions() {}

        /**
         * The axis that adds up to 1; -1 unless stated.
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
     * <p>A row that is −inf throughout gives NaN, as 0 / 0.
     *
     * <p>Gradient: y · (g − Σ g·y), the sum along the axis.
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
     * <p>A row that is −inf throughout gives NaN, as 0 / 0.
     *
     * <p>Gradient: y · (g − Σ g·y), the sum along the axis.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
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
     * The op solve: y with a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices
     * broadcast.
     *
     * <p>b is a vector if it is 1-d, as in NumPy 2, or one for each matrix if it has a's shape without the last axis
     * and its last two axes cannot be matrices of n rows; else they are. Where a is singular y is NaN, or, where
     * rounding hides that, very large; the other systems of the batch are as if it were not there. Integers give
     * float64; float16 is computed in a wider float, and rounded once. M. B. Giles, Collected matrix derivative results
     * for forward and reverse mode algorithmic differentiation (2008).
     *
     * <p>Gradient: db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node solve(Node b) {
        return append("solve", new Attrs(), operands(b));
    }

    /**
     * The op sort: y = x in ascending order along an axis; equal entries keep their order, NaN comes last.
     *
     * <p>Gradient: g, put back where the entries came from.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axis the axis to sort along
     * @return the node
     */
    public Node sort(long axis) {
        return append("sort", new Attrs().with("axis", axis), operands());
    }

    /** What split takes beside what is required. */
    public static final class SplitOptions {
        private final Attrs attrs = new Attrs();

        private SplitOptions() {}

        /**
         * The axis that is cut; 0 unless stated.
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
     * The op split: y0, y1, … = x cut along <code>axis</code> into parts of <code>sizes</code>, which add up to the
     * extent; a part may be empty.
     *
     * <p>Several results, read through get_output.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: the parts' cotangents, joined; zeros for parts that are not read.
     *
     * <p>Of its operands, x is this node.
     *
     * @param sizes the parts' extents on the axis
     * @return the node
     */
    public Node split(long... sizes) {
        return append("split", new Attrs().with("sizes", sizes), operands());
    }

    /**
     * The op split: y0, y1, … = x cut along <code>axis</code> into parts of <code>sizes</code>, which add up to the
     * extent; a part may be empty.
     *
     * <p>Several results, read through get_output.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: the parts' cotangents, joined; zeros for parts that are not read.
     *
     * <p>Of its operands, x is this node.
     *
     * @param sizes the parts' extents on the axis
     * @param options states what is optional
     * @return the node
     */
    public Node split(long[] sizes, Consumer<SplitOptions> options) {
        SplitOptions given = given(new SplitOptions(), options);
        return append("split", given.attrs.with("sizes", sizes), operands());
    }

    /**
     * The op sqrt: y = √x, NaN for x &lt; 0. At 0 the derivative is infinite.
     *
     * <p>Of a complex x the root with Re y ≥ 0. The cut is the negative real axis: the sign of the imaginary zero says
     * from which side value and gradient are taken, as in PyTorch. JAX takes the derivative of one side for both.
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
     * The op squeeze: y = x without <code>axes</code>, each of which must have extent 1; absent: without all axes of
     * extent 1.
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axes axes of extent 1; absent: all there are
     * @return the node
     */
    public Node squeeze(long... axes) {
        return append("squeeze", new Attrs().with("axes", axes), operands());
    }

    /** What stft takes beside what is required. */
    public static final class StftOptions {
        private final Attrs attrs = new Attrs();

        private StftOptions() {}

        /**
         * One: the points of each transform; absent: as many as the window has.
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
     * <p><code>rfft</code> of each part of x that the window [w] covers, of n = w points unless <code>sizes</code>
     * states more or fewer. Nothing is padded: <code>pad</code> x first to have frames around its ends. TensorFlow's
     * <code>signal.stft</code>; PyTorch's and SciPy's <code>stft</code> have the last two axes the other way round, and
     * pad by default. By NumPy and JAX, frames and <code>rfft</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of rfft, times the window, added where frames overlap.
     *
     * <p>Of its operands, x is this node.
     *
     * @param window an operand
     * @param stride one: from the beginning of a frame to that of the next
     * @return the node
     */
    public Node stft(Node window, long... stride) {
        return append("stft", new Attrs().with("stride", stride), operands(window));
    }

    /**
     * The op stft: y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n /
     * 2⌋ + 1].
     *
     * <p><code>rfft</code> of each part of x that the window [w] covers, of n = w points unless <code>sizes</code>
     * states more or fewer. Nothing is padded: <code>pad</code> x first to have frames around its ends. TensorFlow's
     * <code>signal.stft</code>; PyTorch's and SciPy's <code>stft</code> have the last two axes the other way round, and
     * pad by default. By NumPy and JAX, frames and <code>rfft</code>.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: that of rfft, times the window, added where frames overlap.
     *
     * <p>Of its operands, x is this node.
     *
     * @param window an operand
     * @param stride one: from the beginning of a frame to that of the next
     * @param options states what is optional
     * @return the node
     */
    public Node stft(Node window, long[] stride, Consumer<StftOptions> options) {
        StftOptions given = given(new StftOptions(), options);
        return append("stft", given.attrs.with("stride", stride), operands(window));
    }

    /**
     * The op stop_gradient: y = x, and no derivative passes: for differentiation y is a constant.
     *
     * @return the node
     */
    public Node stopGradient() {
        return append("stop_gradient", new Attrs(), operands());
    }

    /**
     * The op struct_field: One field of a record that is kept as one tensor.
     *
     * <p>The leading axis is cut into <code>total_fields</code> equal parts, and y is the part
     * <code>field_index</code>; the axis stays.
     *
     * <p>Gradient: g on that part, 0 on the others.
     *
     * <p>Of its operands, x is this node.
     *
     * @param fieldIndex which field, from 0
     * @param totalFields how many fields the record has
     * @return the node
     */
    public Node structField(long fieldIndex, long totalFields) {
        return append("struct_field", new Attrs().with("field_index", fieldIndex).with("total_fields", totalFields), operands());
    }

    /**
     * The op sub: y = a − b, elementwise, broadcasting as NumPy.
     *
     * <p>Gradient: da = g, db = −g.
     *
     * <p>Of its operands, a is this node.
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
     * <p>Of its operands, x is this node.
     *
     * @param scalar the constant
     * @return the node
     */
    public Node subScalar(double scalar) {
        return append("sub_scalar", new Attrs().with("scalar", scalar), operands());
    }

    /** What sum takes beside what is required. */
    public static final class SumOptions {
        private final Attrs attrs = new Attrs();

        private SumOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public SumOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
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
     * The op sum: y = Σ x over axes. Integers and bool add up in int64, float16 in float32.
     *
     * <p>Gradient: g, broadcast back over the axes.
     *
     * @return the node
     */
    public Node sum() {
        return append("sum", new Attrs(), operands());
    }

    /**
     * The op sum: y = Σ x over axes. Integers and bool add up in int64, float16 in float32.
     *
     * <p>Gradient: g, broadcast back over the axes.
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node sum(Consumer<SumOptions> options) {
        SumOptions given = given(new SumOptions(), options);
        return append("sum", given.attrs, operands());
    }

    /** What svd takes beside what is required. */
    public static final class SvdOptions {
        private final Attrs attrs = new Attrs();

        private SvdOptions() {}

        /**
         * Where values are equal and vectors are read: nan, or whole: only whole spaces are depended on; one of nan,
         * whole; nan unless stated.
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
     * The op svd: u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; thin.
     *
     * <p>x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). Three results, read
     * through get_output. Where only s is read, vectors are not computed, and the gradient of s alone holds at equal
     * values, too, as long as the function treats these alike.
     *
     * <p>Signs, and phases of complex vectors, are as LAPACK leaves them, of a column of u together with the row of vh:
     * a function has a meaning only if it does not depend on them. Singular values closer than 16 n ε ‖x‖, n the larger
     * extent, are taken for equal, and those below that for 0. One that is 0 passes nothing, as <code>abs</code> at 0.
     * Where vectors are read, equal ones and zeros make the gradient NaN, of that matrix alone; or, where
     * <code>degenerate</code> is whole, they are left out, which is right if the function depends on whole spaces of
     * vectors, as a projector and u vh do, and wrong else. Second derivatives where something was left out are NaN, and
     * so are those of s alone at equal values. A matrix that holds an infinity or NaN, or for which LAPACK finds no
     * answer, gives NaN for itself alone. Integers give float64; float16 is computed in a wider float, and rounded
     * once. J. Townsend, Differentiating the singular value decomposition (2016), with 1 / (sⱼ² − sᵢ²) in its partial
     * fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659 (2019) on phases. PyTorch's <code>linalg.svd</code> with
     * full_matrices false, and JAX's, which at a 0 take whichever vectors LAPACK gave.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, and (1 − u uᴴ) ḡu s⁻¹ vh, u s⁻¹ ḡvh (1 − v vᴴ);
     * P, Q = uᴴ ḡu, vh ḡvhᴴ less their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
     *
     * @return the node
     */
    public Node svd() {
        return append("svd", new Attrs(), operands());
    }

    /**
     * The op svd: u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; thin.
     *
     * <p>x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). Three results, read
     * through get_output. Where only s is read, vectors are not computed, and the gradient of s alone holds at equal
     * values, too, as long as the function treats these alike.
     *
     * <p>Signs, and phases of complex vectors, are as LAPACK leaves them, of a column of u together with the row of vh:
     * a function has a meaning only if it does not depend on them. Singular values closer than 16 n ε ‖x‖, n the larger
     * extent, are taken for equal, and those below that for 0. One that is 0 passes nothing, as <code>abs</code> at 0.
     * Where vectors are read, equal ones and zeros make the gradient NaN, of that matrix alone; or, where
     * <code>degenerate</code> is whole, they are left out, which is right if the function depends on whole spaces of
     * vectors, as a projector and u vh do, and wrong else. Second derivatives where something was left out are NaN, and
     * so are those of s alone at equal values. A matrix that holds an infinity or NaN, or for which LAPACK finds no
     * answer, gives NaN for itself alone. Integers give float64; float16 is computed in a wider float, and rounded
     * once. J. Townsend, Differentiating the singular value decomposition (2016), with 1 / (sⱼ² − sᵢ²) in its partial
     * fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659 (2019) on phases. PyTorch's <code>linalg.svd</code> with
     * full_matrices false, and JAX's, which at a 0 take whichever vectors LAPACK gave.
     *
     * <p>Since opset 2.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, and (1 − u uᴴ) ḡu s⁻¹ vh, u s⁻¹ ḡvh (1 − v vᴴ);
     * P, Q = uᴴ ḡu, vh ḡvhᴴ less their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
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
     * <p>f is the square root, its reciprocal, the logarithm or the exponential, of eigenvalues. The gradient is by
     * divided differences, which have a limit where eigenvalues meet: it is exact at equal ones, and so is the second,
     * where v f vᵀ written with <code>eigh</code> has none. A matrix with an eigenvalue at which f is not finite, as
     * log at 0 or below, gives NaN for itself alone, and so does one that holds an infinity or NaN, or for which LAPACK
     * finds no answer. Integers give float64; float16 is computed in a wider float, and rounded once. N. J. Higham,
     * Functions of Matrices (2008), theorem 3.11 of Daleckii and Krein. SciPy's <code>sqrtm</code>, <code>logm</code>
     * and <code>expm</code> of symmetric matrices; PyTorch and JAX have none whose gradient holds at equal eigenvalues,
     * but for exp.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), f′(wᵢ) where wᵢ = wⱼ.
     *
     * <p>Of its operands, x is this node.
     *
     * @param function the function of eigenvalues; rsqrt is 1 / sqrt; one of sqrt, rsqrt, log, exp
     * @return the node
     */
    public Node symmetricFunction(String function) {
        return append("symmetric_function", new Attrs().with("function", function), operands());
    }

    /** What takeAlong takes beside what is required. */
    public static final class TakeAlongOptions {
        private final Attrs attrs = new Attrs();

        private TakeAlongOptions() {}

        /**
         * The axis that is indexed; 0 unless stated.
         *
         * @param axis the value
         * @return these options
         */
        public TakeAlongOptions axis(long axis) {
            attrs.with("axis", axis);
            return this;
        }

        /**
         * Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
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
     * The op take_along: y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others: NumPy's
     * take_along_axis.
     *
     * <p><code>index</code> has x's rank; off the axis the two broadcast, and on it y has the index's extent. Indices
     * lie in [0, extent); with <code>from_end</code>, in [−extent, extent), and negative ones count from the end.
     * PyTorch's <code>take_along_dim</code>, which takes no negative index, and JAX's <code>take_along_axis</code>,
     * which does.
     *
     * <p>Gradient: g added where it was read: repeated indices accumulate; none for index.
     *
     * <p>Of its operands, x is this node.
     *
     * @param index an operand
     * @return the node
     */
    public Node takeAlong(Node index) {
        return append("take_along", new Attrs(), operands(index));
    }

    /**
     * The op take_along: y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others: NumPy's
     * take_along_axis.
     *
     * <p><code>index</code> has x's rank; off the axis the two broadcast, and on it y has the index's extent. Indices
     * lie in [0, extent); with <code>from_end</code>, in [−extent, extent), and negative ones count from the end.
     * PyTorch's <code>take_along_dim</code>, which takes no negative index, and JAX's <code>take_along_axis</code>,
     * which does.
     *
     * <p>Gradient: g added where it was read: repeated indices accumulate; none for index.
     *
     * <p>Of its operands, x is this node.
     *
     * @param index an operand
     * @param options states what is optional
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
     * The op tile: y = x repeated <code>repeats</code> times along each axis. As NumPy: the shorter of shape and
     * repeats is led by ones.
     *
     * <p>Gradient: g, summed over the repetitions.
     *
     * <p>Of its operands, x is this node.
     *
     * @param repeats how many times, for each axis
     * @return the node
     */
    public Node tile(long... repeats) {
        return append("tile", new Attrs().with("repeats", repeats), operands());
    }

    /** What topk takes beside what is required. */
    public static final class TopkOptions {
        private final Attrs attrs = new Attrs();

        private TopkOptions() {}

        /**
         * The axis to search; 0 unless stated.
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
     * positions there.
     *
     * <p>Of equal entries the one with the lowest index comes first; NaN counts as largest. Two results, read through
     * get_output.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: that of the values, put back where they came from; none for indices.
     *
     * <p>Of its operands, x is this node.
     *
     * @param k how many, at most the axis's extent
     * @return the node
     */
    public Node topk(long k) {
        return append("topk", new Attrs().with("k", k), operands());
    }

    /**
     * The op topk: values, indices = the k largest entries of x along <code>axis</code>, largest first, and their int64
     * positions there.
     *
     * <p>Of equal entries the one with the lowest index comes first; NaN counts as largest. Two results, read through
     * get_output.
     *
     * <p>It has several results, each read through getOutput.
     *
     * <p>Gradient: that of the values, put back where they came from; none for indices.
     *
     * <p>Of its operands, x is this node.
     *
     * @param k how many, at most the axis's extent
     * @param options states what is optional
     * @return the node
     */
    public Node topk(long k, Consumer<TopkOptions> options) {
        TopkOptions given = given(new TopkOptions(), options);
        return append("topk", given.attrs.with("k", k), operands());
    }

    /**
     * The op transpose: y = x with its axes permuted.
     *
     * <p>Without <code>axes</code> the last two are swapped (born reverses all: give <code>axes</code>). As many
     * entries as axes: y's axis i is x's axis axes[i]. Two entries on another rank: those two are swapped (minima).
     *
     * <p>Gradient: g, permuted back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axes a permutation, or two axes to swap; absent: the last two
     * @return the node
     */
    public Node transpose(long... axes) {
        return append("transpose", new Attrs().with("axes", axes), operands());
    }

    /** What triangularSolve takes beside what is required. */
    public static final class TriangularSolveOptions {
        private final Attrs attrs = new Attrs();

        private TriangularSolveOptions() {}

        /**
         * Read the lower triangle of a; false: the upper one; true unless stated.
         *
         * @param lower the value
         * @return these options
         */
        public TriangularSolveOptions lower(boolean lower) {
            attrs.with("lower", lower);
            return this;
        }

        /**
         * Solve with the triangle's transpose; false unless stated.
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
     * The op triangular_solve: y with t y = b, or tᵀ y = b where <code>transpose</code>; t is the lower (else the
     * upper) triangle of a, with the diagonal.
     *
     * <p>a [batch…, n, n]: the other triangle is ignored, whatever it holds. b [n], [batch…, n] or [batch…, n, m], read
     * as in <code>solve</code>. Batch axes broadcast. Where the diagonal holds a 0, y is infinite or NaN. Integers
     * compute in float64, float16 in float32. M. B. Giles, Collected matrix derivative results for forward and reverse
     * mode algorithmic differentiation (2008).
     *
     * <p>Gradient: db = t⁻ᴴ g, da = −(db yᴴ), its triangle; with transpose db = (conj t)⁻¹ g, da = −(conj y dbᵀ).
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node triangularSolve(Node b) {
        return append("triangular_solve", new Attrs(), operands(b));
    }

    /**
     * The op triangular_solve: y with t y = b, or tᵀ y = b where <code>transpose</code>; t is the lower (else the
     * upper) triangle of a, with the diagonal.
     *
     * <p>a [batch…, n, n]: the other triangle is ignored, whatever it holds. b [n], [batch…, n] or [batch…, n, m], read
     * as in <code>solve</code>. Batch axes broadcast. Where the diagonal holds a 0, y is infinite or NaN. Integers
     * compute in float64, float16 in float32. M. B. Giles, Collected matrix derivative results for forward and reverse
     * mode algorithmic differentiation (2008).
     *
     * <p>Gradient: db = t⁻ᴴ g, da = −(db yᴴ), its triangle; with transpose db = (conj t)⁻¹ g, da = −(conj y dbᵀ).
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @param options states what is optional
     * @return the node
     */
    public Node triangularSolve(Node b, Consumer<TriangularSolveOptions> options) {
        TriangularSolveOptions given = given(new TriangularSolveOptions(), options);
        return append("triangular_solve", given.attrs, operands(b));
    }

    /** What tril takes beside what is required. */
    public static final class TrilOptions {
        private final Attrs attrs = new Attrs();

        private TrilOptions() {}

        /**
         * Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
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
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node tril(Consumer<TrilOptions> options) {
        TrilOptions given = given(new TrilOptions(), options);
        return append("tril", given.attrs, operands());
    }

    /** What triu takes beside what is required. */
    public static final class TriuOptions {
        private final Attrs attrs = new Attrs();

        private TriuOptions() {}

        /**
         * Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
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
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node triu(Consumer<TriuOptions> options) {
        TriuOptions given = given(new TriuOptions(), options);
        return append("triu", given.attrs, operands());
    }

    /**
     * The op trunc_div: y = a / b without its fraction, elementwise, broadcasting: C's /, with the remainder
     * <code>rem</code>. An integer by 0 is 0.
     *
     * <p>PyTorch's <code>div</code> with rounding_mode trunc; JAX's <code>lax.div</code> of integers, which gives −1
     * for one by 0.
     *
     * <p>Since opset 2.
     *
     * <p>Of its operands, a is this node.
     *
     * @param b an operand
     * @return the node
     */
    public Node truncDiv(Node b) {
        return append("trunc_div", new Attrs(), operands(b));
    }

    /**
     * The op unsqueeze: y = x with axes of extent 1 put in; <code>axes</code> are their positions in the result.
     *
     * <p>Gradient: g, reshaped back.
     *
     * <p>Of its operands, x is this node.
     *
     * @param axes positions of the new axes in the result; must be given
     * @return the node
     */
    public Node unsqueeze(long... axes) {
        return append("unsqueeze", new Attrs().with("axes", axes), operands());
    }

    /**
     * The op update_slice: y = x, with <code>update</code> in place of the box of its shape that begins at
     * <code>starts</code>, one entry for each axis.
     *
     * <p>A negative start counts from the end, as in slice; a box that reaches beyond x is refused, not moved. The
     * result has the common dtype of x and update.
     *
     * <p>Gradient: dx = g, zero where the update lies; d update = g there.
     *
     * <p>Of its operands, x is this node.
     *
     * @param update an operand
     * @param starts first position of the update on each axis
     * @return the node
     */
    public Node updateSlice(Node update, long... starts) {
        return append("update_slice", new Attrs().with("starts", starts), operands(update));
    }

    /**
     * The op update_slice_at: y = x, with <code>updates</code> in place of the box of its shape that begins at
     * <code>starts</code>: int64 [rank], which are computed.
     *
     * <p>Each start is moved into [0, extent − size], negative ones too, so that all of updates lies within. The result
     * has the common dtype of x and updates. JAX's <code>lax.dynamic_update_slice</code>, which first counts negative
     * starts from the end; PyTorch's <code>slice_scatter</code> takes a start on one axis, as a number.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g, zero where the updates lie; d updates = g there; none for starts.
     *
     * <p>Of its operands, x is this node.
     *
     * @param updates an operand
     * @param starts an operand
     * @return the node
     */
    public Node updateSliceAt(Node updates, Node starts) {
        return append("update_slice_at", new Attrs(), operands(updates, starts));
    }

    /** What var takes beside what is required. */
    public static final class VarOptions {
        private final Attrs attrs = new Attrs();

        private VarOptions() {}

        /**
         * Axes to reduce over; absent: all.
         *
         * @param axes the value
         * @return these options
         */
        public VarOptions axes(long... axes) {
            attrs.with("axes", axes);
            return this;
        }

        /**
         * Keep the reduced axes, with extent 1; false unless stated.
         *
         * @param keepdims the value
         * @return these options
         */
        public VarOptions keepdims(boolean keepdims) {
            attrs.with("keepdims", keepdims);
            return this;
        }

        /**
         * What is taken off n: 1 for the unbiased estimate; 0 unless stated.
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
     * <p>Computed in two passes, the mean first, so that a large mean costs no digits. Where n ≤ ddof it divides by
     * zero, as NumPy does: NaN, or infinity.
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
     * <p>Computed in two passes, the mean first, so that a large mean costs no digits. Where n ≤ ddof it divides by
     * zero, as NumPy does: NaN, or infinity.
     *
     * <p>Gradient: g · 2 (x − mean x) / (n − ddof).
     *
     * <p>Of its operands, x is this node.
     *
     * @param options states what is optional
     * @return the node
     */
    public Node var(Consumer<VarOptions> options) {
        VarOptions given = given(new VarOptions(), options);
        return append("var", given.attrs, operands());
    }

    /**
     * The op where: y = on_true where cond, else on_false; the three broadcast. A number as cond is true where it is
     * not zero.
     *
     * <p>Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch
     * holds.
     *
     * <p>Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
     *
     * <p>Of its operands, cond is this node.
     *
     * @param onTrue an operand
     * @param onFalse an operand
     * @return the node
     */
    public Node where(Node onTrue, Node onFalse) {
        return append("where", new Attrs(), operands(onTrue, onFalse));
    }

    /**
     * The op xlog1py: y = x · log(1 + y), broadcasting, accurate for small y; 0 where x = 0, whatever y is but NaN.
     *
     * <p>As SciPy and PyTorch (<code>special.xlog1py</code>) have it; JAX has 0 for NaN, too. By x, the derivative is 0
     * where x = 0 and y = −1, and where x = 0 and y &lt; −1 it is NaN, as JAX's; by y, it is x / (1 + y) everywhere:
     * NaN where x = 0 and y = −1.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g · log(1 + y), and 0 where x = 0 and y = −1; dy = g · x / (1 + y).
     *
     * <p>Of its operands, x is this node.
     *
     * @param y an operand
     * @return the node
     */
    public Node xlog1py(Node y) {
        return append("xlog1py", new Attrs(), operands(y));
    }

    /**
     * The op xlogy: y = x · log y, broadcasting; 0 where x = 0, whatever y is but NaN.
     *
     * <p>As SciPy and PyTorch have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x and y are, and where x
     * = 0 and y &lt; 0 it is NaN, as JAX's (PyTorch's is 0); by y, it is x / y everywhere: NaN where both are 0.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: dx = g · log y, and 0 where x = y = 0; dy = g · x / y.
     *
     * <p>Of its operands, x is this node.
     *
     * @param y an operand
     * @return the node
     */
    public Node xlogy(Node y) {
        return append("xlogy", new Attrs(), operands(y));
    }

    /**
     * The op zeta: y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, broadcasting, for s &gt; 1: SciPy's,
     * <code>torch.special.zeta</code>, JAX's <code>zeta</code>.
     *
     * <p>∞ at s = 1 and at q = 0, −1, −2, …; NaN for s &lt; 1, and where q &lt; 0 and s is no whole number. To 8 units
     * where q &gt; 0, SciPy's own on NumPy; below, as <code>polygamma</code>. Derivatives are of any order: those by q
     * as accurate, those by s, of which PyTorch and JAX have none, to 1e-12 of the terms that they add up; by s and
     * then by q, to a unit over s − 1.
     *
     * <p>Since opset 2.
     *
     * <p>Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
     *
     * <p>Of its operands, s is this node.
     *
     * @param q an operand
     * @return the node
     */
    public Node zeta(Node q) {
        return append("zeta", new Attrs(), operands(q));
    }
}
