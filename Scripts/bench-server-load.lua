-- Sends the requests of a file in turns, and prints what came of it as one line of JSON. The file has a request in each
-- line: method, path, token, If-None-Match, content type and body, with tabs between them.
local requests, turn = {}, 0

function init(arguments)
  for line in io.lines(arguments[1]) do
    local fields = {}
    for field in (line .. "\t"):gmatch("([^\t]*)\t") do fields[#fields + 1] = field end
    local headers = { Authorization = "Bearer " .. fields[3] }
    if fields[4] ~= "" then headers["If-None-Match"] = fields[4] end
    if fields[5] ~= "" then headers["Content-Type"] = fields[5] end
    requests[#requests + 1] = wrk.format(fields[1], fields[2], headers, fields[6] ~= "" and fields[6] or nil)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%f,"refused":%d,"broken":%d,"p50":%f,"p90":%f,"p99":%f,"max":%f}\n',
    summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, latency:percentile(50) / 1e3,
    latency:percentile(90) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
