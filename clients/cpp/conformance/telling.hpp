#pragma once

#include "tensors.hpp"

namespace conformance {

// Results by their API names.

json told(const gs::Json::Object& fields);
json told(const gs::Resident& resident);
json told(const gs::GraphSummary& summary);
json told(const gs::Model& model);
json told(const gs::ForwardAnswer& answer);
json told(const gs::GradientsAnswer& answer);
json told(const gs::JvpAnswer& answer);
json told(const gs::JacobianAnswer& answer);
json told(const gs::HvpAnswer& answer);
json told(const gs::HessianAnswer& answer);
json told(const gs::CheckAnswer& answer);
json told(const gs::PlanAnswer& answer);
json told(const gs::DifferentiateAnswer& answer);

/// An error in the form of a result.
json told(const gs::Error& error);

}  // namespace conformance
