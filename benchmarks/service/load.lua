-- What wrk sends, read from the environment, and what it found, as one line of JSON.

local file = assert(io.open(os.getenv("BODY"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = os.getenv("SENT")
wrk.headers["Accept"] = os.getenv("ACCEPTED")
file:close()
if os.getenv("KEY") then
  wrk.headers["Authorization"] = "Bearer " .. os.getenv("KEY")
end

done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "p50": %.4f, "p99": %.4f, "refused": %d, "broken": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
