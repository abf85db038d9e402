//! Calls of the op methods by name. Written by `python -m clients.ops` from the op registry: do not edit.

use gradserve_client::ops::*;
use gradserve_client::{DType, Graph, GraphFunction, Node, Number, Result, Tensor};

use crate::steps::Step;

/// Calls the method of a step's op, or the generic method if there is none.
pub fn appended(graph: &Graph, step: &Step) -> Result<Node> {
    Ok(match step.op.as_str() {
        "abs" => step.operand(0).abs(),
        "acos" => step.operand(0).acos(),
        "acosh" => step.operand(0).acosh(),
        "adaptive_avg_pool" => step.operand(0).adaptive_avg_pool(step.attr::<Vec<i64>>("sizes")?),
        "adaptive_max_pool" => step.operand(0).adaptive_max_pool(step.attr::<Vec<i64>>("sizes")?),
        "add" => step.operand(0).add(step.operand(1)),
        "add_scalar" => step.operand(0).add_scalar(step.attr::<f64>("scalar")?),
        "all" => {
            let o = AllOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).all_with(o)
        }
        "angle" => step.operand(0).angle(),
        "any" => {
            let o = AnyOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).any_with(o)
        }
        "arange" => {
            let o = ArangeOptions::new();
            let o = step.set(o, "start", |o, v: Number| o.start(v))?;
            let o = step.set(o, "step", |o, v: Number| o.step(v))?;
            let o = step.set(o, "dtype", |o, v: DType| o.dtype(v))?;
            graph.arange_with(step.attr::<Number>("stop")?, o)
        }
        "argmax" => {
            let o = ArgmaxOptions::new();
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).argmax_with(step.attr::<i64>("axis")?, o)
        }
        "argmin" => {
            let o = ArgminOptions::new();
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).argmin_with(step.attr::<i64>("axis")?, o)
        }
        "argsort" => step.operand(0).argsort(step.attr::<i64>("axis")?),
        "asin" => step.operand(0).asin(),
        "asinh" => step.operand(0).asinh(),
        "atan" => step.operand(0).atan(),
        "atan2" => step.operand(0).atan2(step.operand(1)),
        "atanh" => step.operand(0).atanh(),
        "attention" => {
            let o = AttentionOptions::new();
            let o = step.set_operand(o, 3, |o, node| o.mask(node));
            let o = step.set(o, "scale", |o, v: f64| o.scale(v))?;
            let o = step.set(o, "causal", |o, v: bool| o.causal(v))?;
            let o = step.set(o, "grouped", |o, v: bool| o.grouped(v))?;
            step.operand(0).attention_with(step.operand(1), step.operand(2), o)
        }
        "avg_pool1d" => {
            let o = AvgPool1dOptions::new();
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "ceiling", |o, v: bool| o.ceiling(v))?;
            step.operand(0).avg_pool1d_with(step.attr::<Vec<i64>>("kernel_size")?, o)
        }
        "avg_pool2d" => {
            let o = AvgPool2dOptions::new();
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            step.operand(0).avg_pool2d_with(step.attr::<Vec<i64>>("kernel_size")?, o)
        }
        "avg_pool3d" => {
            let o = AvgPool3dOptions::new();
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "ceiling", |o, v: bool| o.ceiling(v))?;
            step.operand(0).avg_pool3d_with(step.attr::<Vec<i64>>("kernel_size")?, o)
        }
        "batch_norm" => {
            let o = BatchNormOptions::new();
            let o = step.set_operand(o, 1, |o, node| o.weight(node));
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            let o = step.set(o, "eps", |o, v: f64| o.eps(v))?;
            step.operand(0).batch_norm_with(o)
        }
        "batch_norm_given" => {
            let o = BatchNormGivenOptions::new();
            let o = step.set_operand(o, 3, |o, node| o.weight(node));
            let o = step.set_operand(o, 4, |o, node| o.bias(node));
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            let o = step.set(o, "eps", |o, v: f64| o.eps(v))?;
            step.operand(0).batch_norm_given_with(step.operand(1), step.operand(2), o)
        }
        "batch_norm_running" => {
            let o = BatchNormRunningOptions::new();
            let o = step.set_operand(o, 3, |o, node| o.weight(node));
            let o = step.set_operand(o, 4, |o, node| o.bias(node));
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            let o = step.set(o, "eps", |o, v: f64| o.eps(v))?;
            let o = step.set(o, "momentum", |o, v: f64| o.momentum(v))?;
            step.operand(0).batch_norm_running_with(step.operand(1), step.operand(2), o)
        }
        "bce_with_logits" => {
            let o = BceWithLogitsOptions::new();
            let o = step.set(o, "reduction", |o, v: String| o.reduction(&v))?;
            step.operand(0).bce_with_logits_with(step.operand(1), o)
        }
        "betainc" => step.operand(0).betainc(step.operand(1), step.operand(2)),
        "betaln" => step.operand(0).betaln(step.operand(1)),
        "broadcast_to" => {
            let o = BroadcastToOptions::new();
            let o = step.set(o, "shape", |o, v: Vec<i64>| o.shape(v))?;
            step.operand(0).broadcast_to_with(o)
        }
        "call" => {
            let o = CallOptions::new();
            let o = step.set(o, "derivative", |o, v: GraphFunction| o.derivative(&v))?;
            let o = step.set(o, "recompute", |o, v: bool| o.recompute(v))?;
            graph.call_with(&step.nodes[0..], &step.attr::<GraphFunction>("body")?, o)
        }
        "cast" => step.operand(0).cast(step.attr::<DType>("dtype")?),
        "cat" => {
            let o = CatOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            let o = step.set(o, "sizes", |o, v: Vec<i64>| o.sizes(v))?;
            graph.cat_with(&step.nodes[0..], o)
        }
        "cdist" => {
            let o = CdistOptions::new();
            let o = step.set(o, "p", |o, v: f64| o.p(v))?;
            step.operand(0).cdist_with(step.operand(1), o)
        }
        "ceil" => step.operand(0).ceil(),
        "cholesky" => step.operand(0).cholesky(),
        "chunk" => {
            let o = ChunkOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            step.operand(0).chunk_with(step.attr::<i64>("chunks")?, o)
        }
        "clamp" => {
            let o = ClampOptions::new();
            let o = step.set(o, "min", |o, v: Number| o.min(v))?;
            let o = step.set(o, "max", |o, v: Number| o.max(v))?;
            step.operand(0).clamp_with(o)
        }
        "compress" => {
            let o = CompressOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            let o = step.set(o, "fill", |o, v: Number| o.fill(v))?;
            let o = step.set(o, "fill_as", |o, v: String| o.fill_as(&v))?;
            step.operand(0).compress_with(step.operand(1), step.attr::<i64>("k")?, o)
        }
        "cond" => graph.cond(
            step.operand(0),
            &step.nodes[1..],
            &step.attr::<GraphFunction>("then")?,
            &step.attr::<GraphFunction>("otherwise")?,
        ),
        "cond_number" => step.operand(0).cond_number(),
        "conj" => step.operand(0).conj(),
        "constant" => graph.constant(step.attr::<Tensor>("value")?),
        "conv1d" => {
            let o = Conv1dOptions::new();
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "dilation", |o, v: Vec<i64>| o.dilation(v))?;
            let o = step.set(o, "groups", |o, v: i64| o.groups(v))?;
            step.operand(0).conv1d_with(step.operand(1), o)
        }
        "conv2d" => {
            let o = Conv2dOptions::new();
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "dilation", |o, v: Vec<i64>| o.dilation(v))?;
            let o = step.set(o, "groups", |o, v: i64| o.groups(v))?;
            step.operand(0).conv2d_with(step.operand(1), o)
        }
        "conv3d" => {
            let o = Conv3dOptions::new();
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "dilation", |o, v: Vec<i64>| o.dilation(v))?;
            let o = step.set(o, "groups", |o, v: i64| o.groups(v))?;
            step.operand(0).conv3d_with(step.operand(1), o)
        }
        "conv_transpose1d" => {
            let o = ConvTranspose1dOptions::new();
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "dilation", |o, v: Vec<i64>| o.dilation(v))?;
            let o = step.set(o, "groups", |o, v: i64| o.groups(v))?;
            let o = step.set(o, "output_padding", |o, v: Vec<i64>| o.output_padding(v))?;
            step.operand(0).conv_transpose1d_with(step.operand(1), o)
        }
        "conv_transpose2d" => {
            let o = ConvTranspose2dOptions::new();
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "dilation", |o, v: Vec<i64>| o.dilation(v))?;
            let o = step.set(o, "groups", |o, v: i64| o.groups(v))?;
            let o = step.set(o, "output_padding", |o, v: Vec<i64>| o.output_padding(v))?;
            step.operand(0).conv_transpose2d_with(step.operand(1), o)
        }
        "conv_transpose3d" => {
            let o = ConvTranspose3dOptions::new();
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "dilation", |o, v: Vec<i64>| o.dilation(v))?;
            let o = step.set(o, "groups", |o, v: i64| o.groups(v))?;
            let o = step.set(o, "output_padding", |o, v: Vec<i64>| o.output_padding(v))?;
            step.operand(0).conv_transpose3d_with(step.operand(1), o)
        }
        "copy_to_device" => step.operand(0).copy_to_device(),
        "cos" => step.operand(0).cos(),
        "cosh" => step.operand(0).cosh(),
        "cross_entropy" => {
            let o = CrossEntropyOptions::new();
            let o = step.set(o, "reduction", |o, v: String| o.reduction(&v))?;
            step.operand(0).cross_entropy_with(step.operand(1), o)
        }
        "cumlogsumexp" => {
            let o = CumlogsumexpOptions::new();
            let o = step.set(o, "reverse", |o, v: bool| o.reverse(v))?;
            step.operand(0).cumlogsumexp_with(step.attr::<i64>("axis")?, o)
        }
        "cummax" => {
            let o = CummaxOptions::new();
            let o = step.set(o, "reverse", |o, v: bool| o.reverse(v))?;
            step.operand(0).cummax_with(step.attr::<i64>("axis")?, o)
        }
        "cummin" => {
            let o = CumminOptions::new();
            let o = step.set(o, "reverse", |o, v: bool| o.reverse(v))?;
            step.operand(0).cummin_with(step.attr::<i64>("axis")?, o)
        }
        "cumprod" => {
            let o = CumprodOptions::new();
            let o = step.set(o, "reverse", |o, v: bool| o.reverse(v))?;
            step.operand(0).cumprod_with(step.attr::<i64>("axis")?, o)
        }
        "cumsum" => {
            let o = CumsumOptions::new();
            let o = step.set(o, "reverse", |o, v: bool| o.reverse(v))?;
            step.operand(0).cumsum_with(step.attr::<i64>("axis")?, o)
        }
        "det" => step.operand(0).det(),
        "diag" => {
            let o = DiagOptions::new();
            let o = step.set(o, "offset", |o, v: i64| o.offset(v))?;
            step.operand(0).diag_with(o)
        }
        "digamma" => step.operand(0).digamma(),
        "div" => step.operand(0).div(step.operand(1)),
        "div_scalar" => step.operand(0).div_scalar(step.attr::<f64>("scalar")?),
        "eigh" => {
            let o = EighOptions::new();
            let o = step.set(o, "degenerate", |o, v: String| o.degenerate(&v))?;
            step.operand(0).eigh_with(o)
        }
        "einsum" => graph.einsum(step.operand(0), &step.nodes[1..], &step.attr::<String>("equation")?),
        "elu" => {
            let o = EluOptions::new();
            let o = step.set(o, "alpha", |o, v: f64| o.alpha(v))?;
            step.operand(0).elu_with(o)
        }
        "embedding" => {
            let o = EmbeddingOptions::new();
            let o = step.set(o, "from_end", |o, v: bool| o.from_end(v))?;
            let o = step.set(o, "padding_idx", |o, v: i64| o.padding_idx(v))?;
            step.operand(0).embedding_with(step.operand(1), o)
        }
        "equal" => step.operand(0).equal(step.operand(1)),
        "erf" => step.operand(0).erf(),
        "erfc" => step.operand(0).erfc(),
        "erfinv" => step.operand(0).erfinv(),
        "exp" => step.operand(0).exp(),
        "expm1" => step.operand(0).expm1(),
        "fft" => {
            let o = FftOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "sizes", |o, v: Vec<i64>| o.sizes(v))?;
            let o = step.set(o, "norm", |o, v: String| o.norm(&v))?;
            step.operand(0).fft_with(o)
        }
        "fixed_point" => {
            let o = FixedPointOptions::new();
            let o = step.set(o, "carries", |o, v: i64| o.carries(v))?;
            graph.fixed_point_with(
                &step.nodes[0..],
                &step.attr::<GraphFunction>("body")?,
                step.attr::<f64>("tolerance")?,
                step.attr::<i64>("max_steps")?,
                o,
            )
        }
        "flatten" => {
            let o = FlattenOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            step.operand(0).flatten_with(o)
        }
        "flip" => {
            let o = FlipOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            step.operand(0).flip_with(o)
        }
        "floor" => step.operand(0).floor(),
        "floor_div" => step.operand(0).floor_div(step.operand(1)),
        "full" => {
            let o = FullOptions::new();
            let o = step.set(o, "shape", |o, v: Vec<i64>| o.shape(v))?;
            let o = step.set(o, "fill", |o, v: Number| o.fill(v))?;
            let o = step.set(o, "dtype", |o, v: DType| o.dtype(v))?;
            let o = step.set(o, "fill_as", |o, v: String| o.fill_as(&v))?;
            graph.full_with(o)
        }
        "gather" => {
            let o = GatherOptions::new();
            let o = step.set_operand(o, 1, |o, node| o.index(node));
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            let o = step.set(o, "indices", |o, v: Vec<i64>| o.indices(v))?;
            let o = step.set(o, "from_end", |o, v: bool| o.from_end(v))?;
            step.operand(0).gather_with(o)
        }
        "gelu" => {
            let o = GeluOptions::new();
            let o = step.set(o, "approximate", |o, v: String| o.approximate(&v))?;
            step.operand(0).gelu_with(o)
        }
        "get_output" => step.operand(0).get_output(step.attr::<i64>("index")?),
        "grad" => {
            let o = GradOptions::new();
            let o = step.set_operand(o, 2, |o, node| o.cotangent(node));
            step.operand(0).grad_with(step.operand(1), o)
        }
        "greater" => step.operand(0).greater(step.operand(1)),
        "greater_equal" => step.operand(0).greater_equal(step.operand(1)),
        "group_norm" => {
            let o = GroupNormOptions::new();
            let o = step.set_operand(o, 1, |o, node| o.weight(node));
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "eps", |o, v: f64| o.eps(v))?;
            step.operand(0).group_norm_with(step.attr::<i64>("groups")?, o)
        }
        "i0" => step.operand(0).i0(),
        "i0e" => step.operand(0).i0e(),
        "i1" => step.operand(0).i1(),
        "i1e" => step.operand(0).i1e(),
        "identity" => step.operand(0).identity(),
        "ifft" => {
            let o = IfftOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "sizes", |o, v: Vec<i64>| o.sizes(v))?;
            let o = step.set(o, "norm", |o, v: String| o.norm(&v))?;
            step.operand(0).ifft_with(o)
        }
        "igamma" => step.operand(0).igamma(step.operand(1)),
        "igammac" => step.operand(0).igammac(step.operand(1)),
        "imag" => step.operand(0).imag(),
        "index" => {
            let o = IndexOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "from_end", |o, v: bool| o.from_end(v))?;
            graph.index_with(step.operand(0), &step.nodes[1..], o)
        }
        "index_add" => {
            let o = IndexAddOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "from_end", |o, v: bool| o.from_end(v))?;
            graph.index_add_with(step.operand(0), &step.nodes[1..], o)
        }
        "index_set" => {
            let o = IndexSetOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "from_end", |o, v: bool| o.from_end(v))?;
            graph.index_set_with(step.operand(0), &step.nodes[1..], o)
        }
        "input" => {
            let o = InputOptions::new();
            let o = step.set(o, "dtype", |o, v: DType| o.dtype(v))?;
            let o = step.set(o, "shape", |o, v: Vec<i64>| o.shape(v))?;
            let o = step.set(o, "zero_d", |o, v: bool| o.zero_d(v))?;
            graph.input_with(&step.name, o)
        }
        "inv" => step.operand(0).inv(),
        "irfft" => {
            let o = IrfftOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "sizes", |o, v: Vec<i64>| o.sizes(v))?;
            let o = step.set(o, "norm", |o, v: String| o.norm(&v))?;
            step.operand(0).irfft_with(o)
        }
        "is_finite" => step.operand(0).is_finite(),
        "layer_norm" => {
            let o = LayerNormOptions::new();
            let o = step.set_operand(o, 1, |o, node| o.weight(node));
            let o = step.set_operand(o, 2, |o, node| o.bias(node));
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "eps", |o, v: f64| o.eps(v))?;
            step.operand(0).layer_norm_with(o)
        }
        "leaky_relu" => {
            let o = LeakyReluOptions::new();
            let o = step.set(o, "alpha", |o, v: f64| o.alpha(v))?;
            step.operand(0).leaky_relu_with(o)
        }
        "less" => step.operand(0).less(step.operand(1)),
        "less_equal" => step.operand(0).less_equal(step.operand(1)),
        "lgamma" => step.operand(0).lgamma(),
        "linear" => {
            let o = LinearOptions::new();
            let o = step.set_operand(o, 2, |o, node| o.b(node));
            let o = step.set(o, "activation", |o, v: String| o.activation(&v))?;
            step.operand(0).linear_with(step.operand(1), o)
        }
        "log" => step.operand(0).log(),
        "log1p" => step.operand(0).log1p(),
        "log2" => step.operand(0).log2(),
        "log_eps" => {
            let o = LogEpsOptions::new();
            let o = step.set(o, "eps", |o, v: f64| o.eps(v))?;
            step.operand(0).log_eps_with(o)
        }
        "log_ndtr" => step.operand(0).log_ndtr(),
        "log_sigmoid" => step.operand(0).log_sigmoid(),
        "log_softmax" => {
            let o = LogSoftmaxOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            step.operand(0).log_softmax_with(o)
        }
        "logaddexp" => step.operand(0).logaddexp(step.operand(1)),
        "logical_and" => step.operand(0).logical_and(step.operand(1)),
        "logical_not" => step.operand(0).logical_not(),
        "logical_or" => step.operand(0).logical_or(step.operand(1)),
        "logsumexp" => {
            let o = LogsumexpOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).logsumexp_with(o)
        }
        "lstsq" => {
            let o = LstsqOptions::new();
            let o = step.set(o, "rcond", |o, v: f64| o.rcond(v))?;
            step.operand(0).lstsq_with(step.operand(1), o)
        }
        "lu" => step.operand(0).lu(),
        "make_complex" => step.operand(0).make_complex(step.operand(1)),
        "map" => {
            let o = MapOptions::new();
            let o = step.set(o, "sequences", |o, v: i64| o.sequences(v))?;
            let o = step.set(o, "at_once", |o, v: i64| o.at_once(v))?;
            graph.map_with(&step.nodes[0..], &step.attr::<GraphFunction>("body")?, o)
        }
        "map_lookup" => step.operand(0).map_lookup(step.attr::<i64>("key_index")?, step.attr::<i64>("total_keys")?),
        "matmul" => step.operand(0).matmul(step.operand(1)),
        "matrix_exp" => step.operand(0).matrix_exp(),
        "matrix_power" => step.operand(0).matrix_power(step.attr::<i64>("k")?),
        "matrix_rank" => step.operand(0).matrix_rank(),
        "max" => {
            let o = MaxOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).max_with(o)
        }
        "max_pool1d" => {
            let o = MaxPool1dOptions::new();
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "dilation", |o, v: Vec<i64>| o.dilation(v))?;
            let o = step.set(o, "ceiling", |o, v: bool| o.ceiling(v))?;
            step.operand(0).max_pool1d_with(step.attr::<Vec<i64>>("kernel_size")?, o)
        }
        "max_pool2d" => {
            let o = MaxPool2dOptions::new();
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            step.operand(0).max_pool2d_with(step.attr::<Vec<i64>>("kernel_size")?, o)
        }
        "max_pool2d_back" => {
            let o = MaxPool2dBackOptions::new();
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            step.operand(0).max_pool2d_back_with(step.operand(1), step.attr::<Vec<i64>>("kernel_size")?, o)
        }
        "max_pool2d_indices" => {
            let o = MaxPool2dIndicesOptions::new();
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            step.operand(0).max_pool2d_indices_with(step.attr::<Vec<i64>>("kernel_size")?, o)
        }
        "max_pool3d" => {
            let o = MaxPool3dOptions::new();
            let o = step.set(o, "stride", |o, v: Vec<i64>| o.stride(v))?;
            let o = step.set(o, "padding", |o, v: Vec<i64>| o.padding(v))?;
            let o = step.set(o, "dilation", |o, v: Vec<i64>| o.dilation(v))?;
            let o = step.set(o, "ceiling", |o, v: bool| o.ceiling(v))?;
            step.operand(0).max_pool3d_with(step.attr::<Vec<i64>>("kernel_size")?, o)
        }
        "maximum" => step.operand(0).maximum(step.operand(1)),
        "mean" => {
            let o = MeanOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).mean_with(o)
        }
        "min" => {
            let o = MinOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).min_with(o)
        }
        "minimum" => step.operand(0).minimum(step.operand(1)),
        "mlp_layer" => {
            let o = MlpLayerOptions::new();
            let o = step.set(o, "activation", |o, v: String| o.activation(&v))?;
            step.operand(0).mlp_layer_with(step.operand(1), step.operand(2), o)
        }
        "mod" => step.operand(0).mod_(step.operand(1)),
        "mse_loss" => {
            let o = MseLossOptions::new();
            let o = step.set(o, "reduction", |o, v: String| o.reduction(&v))?;
            step.operand(0).mse_loss_with(step.operand(1), o)
        }
        "mul" => step.operand(0).mul(step.operand(1)),
        "mul_scalar" => step.operand(0).mul_scalar(step.attr::<f64>("scalar")?),
        "neg" => step.operand(0).neg(),
        "nonzero" => step.operand(0).nonzero(step.attr::<i64>("k")?),
        "norm" => {
            let o = NormOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).norm_with(o)
        }
        "not_equal" => step.operand(0).not_equal(step.operand(1)),
        "one_hot" => {
            let o = OneHotOptions::new();
            let o = step.set(o, "dtype", |o, v: DType| o.dtype(v))?;
            step.operand(0).one_hot_with(step.attr::<i64>("classes")?, o)
        }
        "pad" => {
            let o = PadOptions::new();
            let o = step.set(o, "fill", |o, v: Number| o.fill(v))?;
            let o = step.set(o, "fill_as", |o, v: String| o.fill_as(&v))?;
            step.operand(0).pad_with(step.attr::<Vec<i64>>("pad_width")?, o)
        }
        "parameter" => {
            let o = ParameterOptions::new();
            let o = step.set(o, "dtype", |o, v: DType| o.dtype(v))?;
            let o = step.set(o, "shape", |o, v: Vec<i64>| o.shape(v))?;
            let o = step.set(o, "zero_d", |o, v: bool| o.zero_d(v))?;
            graph.parameter_with(&step.name, o)
        }
        "pinv" => {
            let o = PinvOptions::new();
            let o = step.set(o, "rcond", |o, v: f64| o.rcond(v))?;
            step.operand(0).pinv_with(o)
        }
        "polygamma" => step.operand(0).polygamma(step.attr::<i64>("order")?),
        "pow" => {
            let o = PowOptions::new();
            let o = step.set_operand(o, 1, |o, node| o.b(node));
            let o = step.set(o, "exponent", |o, v: f64| o.exponent(v))?;
            step.operand(0).pow_with(o)
        }
        "pow_scalar" => step.operand(0).pow_scalar(step.attr::<f64>("exponent")?),
        "prod" => {
            let o = ProdOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).prod_with(o)
        }
        "qr" => step.operand(0).qr(),
        "random_bernoulli" => step.operand(0).random_bernoulli(step.operand(1)),
        "random_bits" => {
            let o = RandomBitsOptions::new();
            let o = step.set(o, "dtype", |o, v: DType| o.dtype(v))?;
            step.operand(0).random_bits_with(step.attr::<Vec<i64>>("shape")?, o)
        }
        "random_categorical" => {
            let o = RandomCategoricalOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            step.operand(0).random_categorical_with(step.operand(1), o)
        }
        "random_exponential" => {
            step.operand(0).random_exponential(step.attr::<Vec<i64>>("shape")?, step.attr::<DType>("dtype")?)
        }
        "random_fold_in" => step.operand(0).random_fold_in(step.operand(1)),
        "random_gumbel" => step.operand(0).random_gumbel(step.attr::<Vec<i64>>("shape")?, step.attr::<DType>("dtype")?),
        "random_key" => step.operand(0).random_key(),
        "random_normal" => step.operand(0).random_normal(step.attr::<Vec<i64>>("shape")?, step.attr::<DType>("dtype")?),
        "random_permutation" => step.operand(0).random_permutation(step.attr::<i64>("k")?),
        "random_split" => step.operand(0).random_split(step.attr::<i64>("k")?),
        "random_uniform" => {
            step.operand(0).random_uniform(step.attr::<Vec<i64>>("shape")?, step.attr::<DType>("dtype")?)
        }
        "real" => step.operand(0).real(),
        "reciprocal" => step.operand(0).reciprocal(),
        "relu" => {
            let o = ReluOptions::new();
            let o = step.set(o, "at_zero", |o, v: f64| o.at_zero(v))?;
            step.operand(0).relu_with(o)
        }
        "rem" => step.operand(0).rem(step.operand(1)),
        "reshape" => {
            let o = ReshapeOptions::new();
            let o = step.set(o, "shape", |o, v: Vec<i64>| o.shape(v))?;
            let o = step.set(o, "original_shape", |o, v: Vec<i64>| o.original_shape(v))?;
            step.operand(0).reshape_with(o)
        }
        "resize" => {
            let o = ResizeOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "method", |o, v: String| o.method(&v))?;
            let o = step.set(o, "antialias", |o, v: bool| o.antialias(v))?;
            let o = step.set(o, "corners", |o, v: bool| o.corners(v))?;
            step.operand(0).resize_with(step.attr::<Vec<i64>>("sizes")?, o)
        }
        "rfft" => {
            let o = RfftOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "sizes", |o, v: Vec<i64>| o.sizes(v))?;
            let o = step.set(o, "norm", |o, v: String| o.norm(&v))?;
            step.operand(0).rfft_with(o)
        }
        "rms_norm" => {
            let o = RmsNormOptions::new();
            let o = step.set_operand(o, 1, |o, node| o.weight(node));
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "eps", |o, v: f64| o.eps(v))?;
            step.operand(0).rms_norm_with(o)
        }
        "roll" => {
            let o = RollOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            step.operand(0).roll_with(step.attr::<Vec<i64>>("shifts")?, o)
        }
        "round" => step.operand(0).round(),
        "rsqrt" => step.operand(0).rsqrt(),
        "scan" => {
            let o = ScanOptions::new();
            let o = step.set(o, "carries", |o, v: i64| o.carries(v))?;
            let o = step.set(o, "sequences", |o, v: i64| o.sequences(v))?;
            let o = step.set(o, "length", |o, v: i64| o.length(v))?;
            let o = step.set(o, "reverse", |o, v: bool| o.reverse(v))?;
            graph.scan_with(&step.nodes[0..], &step.attr::<GraphFunction>("body")?, o)
        }
        "scatter_add" => {
            let o = ScatterAddOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            let o = step.set(o, "from_end", |o, v: bool| o.from_end(v))?;
            step.operand(0).scatter_add_with(step.operand(1), step.operand(2), o)
        }
        "segment_max" => step.operand(0).segment_max(step.operand(1), step.attr::<i64>("segments")?),
        "segment_mean" => step.operand(0).segment_mean(step.operand(1), step.attr::<i64>("segments")?),
        "segment_min" => step.operand(0).segment_min(step.operand(1), step.attr::<i64>("segments")?),
        "segment_prod" => step.operand(0).segment_prod(step.operand(1), step.attr::<i64>("segments")?),
        "segment_sum" => step.operand(0).segment_sum(step.operand(1), step.attr::<i64>("segments")?),
        "select" => {
            let o = SelectOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            step.operand(0).select_with(step.attr::<i64>("index")?, o)
        }
        "selu" => step.operand(0).selu(),
        "sigmoid" => step.operand(0).sigmoid(),
        "sign" => step.operand(0).sign(),
        "silu" => step.operand(0).silu(),
        "sin" => step.operand(0).sin(),
        "sinc" => step.operand(0).sinc(),
        "sinh" => step.operand(0).sinh(),
        "slice" => {
            let o = SliceOptions::new();
            let o = step.set(o, "starts", |o, v: Vec<i64>| o.starts(v))?;
            let o = step.set(o, "stops", |o, v: Vec<i64>| o.stops(v))?;
            let o = step.set(o, "steps", |o, v: Vec<i64>| o.steps(v))?;
            step.operand(0).slice_with(o)
        }
        "slice_at" => step.operand(0).slice_at(step.operand(1), step.attr::<Vec<i64>>("sizes")?),
        "slogdet" => step.operand(0).slogdet(),
        "softmax" => {
            let o = SoftmaxOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            step.operand(0).softmax_with(o)
        }
        "softplus" => step.operand(0).softplus(),
        "solve" => step.operand(0).solve(step.operand(1)),
        "sort" => step.operand(0).sort(step.attr::<i64>("axis")?),
        "split" => {
            let o = SplitOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            step.operand(0).split_with(step.attr::<Vec<i64>>("sizes")?, o)
        }
        "sqrt" => step.operand(0).sqrt(),
        "square" => step.operand(0).square(),
        "squeeze" => {
            let o = SqueezeOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            step.operand(0).squeeze_with(o)
        }
        "stack" => {
            let o = StackOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            graph.stack_with(&step.nodes[0..], o)
        }
        "stft" => {
            let o = StftOptions::new();
            let o = step.set(o, "sizes", |o, v: Vec<i64>| o.sizes(v))?;
            step.operand(0).stft_with(step.operand(1), step.attr::<Vec<i64>>("stride")?, o)
        }
        "stop_gradient" => step.operand(0).stop_gradient(),
        "struct_field" => {
            step.operand(0).struct_field(step.attr::<i64>("field_index")?, step.attr::<i64>("total_fields")?)
        }
        "sub" => step.operand(0).sub(step.operand(1)),
        "sub_scalar" => step.operand(0).sub_scalar(step.attr::<f64>("scalar")?),
        "sum" => {
            let o = SumOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            step.operand(0).sum_with(o)
        }
        "svd" => {
            let o = SvdOptions::new();
            let o = step.set(o, "degenerate", |o, v: String| o.degenerate(&v))?;
            step.operand(0).svd_with(o)
        }
        "symmetric_function" => step.operand(0).symmetric_function(&step.attr::<String>("function")?),
        "take_along" => {
            let o = TakeAlongOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            let o = step.set(o, "from_end", |o, v: bool| o.from_end(v))?;
            step.operand(0).take_along_with(step.operand(1), o)
        }
        "tan" => step.operand(0).tan(),
        "tanh" => step.operand(0).tanh(),
        "tile" => step.operand(0).tile(step.attr::<Vec<i64>>("repeats")?),
        "topk" => {
            let o = TopkOptions::new();
            let o = step.set(o, "axis", |o, v: i64| o.axis(v))?;
            step.operand(0).topk_with(step.attr::<i64>("k")?, o)
        }
        "transpose" => {
            let o = TransposeOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            step.operand(0).transpose_with(o)
        }
        "triangular_solve" => {
            let o = TriangularSolveOptions::new();
            let o = step.set(o, "lower", |o, v: bool| o.lower(v))?;
            let o = step.set(o, "transpose", |o, v: bool| o.transpose(v))?;
            step.operand(0).triangular_solve_with(step.operand(1), o)
        }
        "tril" => {
            let o = TrilOptions::new();
            let o = step.set(o, "offset", |o, v: i64| o.offset(v))?;
            step.operand(0).tril_with(o)
        }
        "triu" => {
            let o = TriuOptions::new();
            let o = step.set(o, "offset", |o, v: i64| o.offset(v))?;
            step.operand(0).triu_with(o)
        }
        "trunc_div" => step.operand(0).trunc_div(step.operand(1)),
        "unsqueeze" => {
            let o = UnsqueezeOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            step.operand(0).unsqueeze_with(o)
        }
        "update_slice" => step.operand(0).update_slice(step.operand(1), step.attr::<Vec<i64>>("starts")?),
        "update_slice_at" => step.operand(0).update_slice_at(step.operand(1), step.operand(2)),
        "var" => {
            let o = VarOptions::new();
            let o = step.set(o, "axes", |o, v: Vec<i64>| o.axes(v))?;
            let o = step.set(o, "keepdims", |o, v: bool| o.keepdims(v))?;
            let o = step.set(o, "ddof", |o, v: i64| o.ddof(v))?;
            step.operand(0).var_with(o)
        }
        "where" => step.operand(0).where_(step.operand(1), step.operand(2)),
        "while" => {
            let o = WhileOptions::new();
            let o = step.set(o, "carries", |o, v: i64| o.carries(v))?;
            graph.while_with(
                &step.nodes[0..],
                &step.attr::<GraphFunction>("condition")?,
                &step.attr::<GraphFunction>("body")?,
                step.attr::<i64>("max_steps")?,
                o,
            )
        }
        "xlog1py" => step.operand(0).xlog1py(step.operand(1)),
        "xlogy" => step.operand(0).xlogy(step.operand(1)),
        "zeta" => step.operand(0).zeta(step.operand(1)),
        _ => step.any(graph)?,
    })
}
