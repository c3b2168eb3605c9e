# sock_ruby.rb …: as sock_python.py, by Ruby's net/http.
require "digest"
require "json"
require "net/http"

options = { "timeout" => "20" }
rest = []
words = ARGV.dup
while (word = words.shift)
  case word
  when "--timeout" then options["timeout"] = words.shift
  when /\A--(.+)/ then options[$1] = true
  else rest << word
  end
end
$timeout = options["timeout"].to_f
$kept = {}
$stdout.sync = true

def connection_to(uri, close)
  return $kept[uri.port] if !close && $kept[uri.port]&.started?

  http = Net::HTTP.new(uri.host, uri.port, nil)
  http.open_timeout = http.read_timeout = http.write_timeout = $timeout
  http.keep_alive_timeout = 60
  http.use_ssl = uri.scheme == "https"
  http.start
  $kept[uri.port] = http unless close
  http
end

def post(uri, model, stream, close)
  http = connection_to(uri, close)
  request = Net::HTTP::Post.new(uri, "Content-Type" => "application/json")
  request["Connection"] = "close" if close
  request.body = JSON.generate({ "model" => model, "messages" => [] })
  body = +""
  answer = http.request(request) do |head|
    stream ? head.read_body { |piece| body << piece } : body << head.read_body
  end
  http.finish if close
  [answer.code, body]
end

def call(url, model, stream, close)
  uri = URI(url)
  status, body = post(uri, model, stream, close)
  puts "status #{status} #{body.include?("circuit_open") ? "circuit_open" : "-"} #{Digest::SHA256.hexdigest(body)[0, 16]}"
rescue Errno::ECONNREFUSED
  puts "error refused"
rescue Net::OpenTimeout, Net::ReadTimeout, Errno::ETIMEDOUT
  puts "error timeout"
rescue StandardError => error
  $kept.delete(uri.port)
  puts "error other:#{error.class}"
end

if rest[0] == "-"
  while (line = $stdin.gets)
    url, model, *how = line.split
    call(url, model, how.include?("stream"), how.include?("close"))
  end
else
  (rest[1] || 1).to_i.times { call(rest[0], rest[2] || "m", options["stream"], options["close"]) }
end
