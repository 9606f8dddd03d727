package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/tasks"
)

// directMethods make the SDK's request of a message. Their parameters are
// taken from what the front has parsed, name by name, so that no second parser
// can read them in another way.
var directMethods = map[string]func(*mcp.ServerSession, *mcp.RequestExtra, *params) mcp.Request{
	"tools/call": func(s *mcp.ServerSession, x *mcp.RequestExtra, p *params) mcp.Request {
		out := &mcp.CallToolParamsRaw{Meta: p.meta(), Arguments: p.message.Params["arguments"]}
		p.read("name", &out.Name)
		p.read("inputResponses", &out.InputResponses)
		p.read("requestState", &out.RequestState)
		return &mcp.CallToolRequest{Session: s, Extra: x, Params: out}
	},
	"prompts/get": func(s *mcp.ServerSession, x *mcp.RequestExtra, p *params) mcp.Request {
		out := &mcp.GetPromptParams{Meta: p.meta()}
		p.read("name", &out.Name)
		p.read("arguments", &out.Arguments)
		p.read("inputResponses", &out.InputResponses)
		p.read("requestState", &out.RequestState)
		return &mcp.GetPromptRequest{Session: s, Extra: x, Params: out}
	},
	"resources/read": func(s *mcp.ServerSession, x *mcp.RequestExtra, p *params) mcp.Request {
		out := &mcp.ReadResourceParams{Meta: p.meta()}
		p.read("uri", &out.URI)
		p.read("inputResponses", &out.InputResponses)
		p.read("requestState", &out.RequestState)
		return &mcp.ReadResourceRequest{Session: s, Extra: x, Params: out}
	},
	"tools/list": func(s *mcp.ServerSession, x *mcp.RequestExtra, p *params) mcp.Request {
		out := &mcp.ListToolsParams{Meta: p.meta()}
		p.read("cursor", &out.Cursor)
		return &mcp.ListToolsRequest{Session: s, Extra: x, Params: out}
	},
	"prompts/list": func(s *mcp.ServerSession, x *mcp.RequestExtra, p *params) mcp.Request {
		out := &mcp.ListPromptsParams{Meta: p.meta()}
		p.read("cursor", &out.Cursor)
		return &mcp.ListPromptsRequest{Session: s, Extra: x, Params: out}
	},
	"resources/list": func(s *mcp.ServerSession, x *mcp.RequestExtra, p *params) mcp.Request {
		out := &mcp.ListResourcesParams{Meta: p.meta()}
		p.read("cursor", &out.Cursor)
		return &mcp.ListResourcesRequest{Session: s, Extra: x, Params: out}
	},
	"resources/templates/list": func(s *mcp.ServerSession, x *mcp.RequestExtra, p *params) mcp.Request {
		out := &mcp.ListResourceTemplatesParams{Meta: p.meta()}
		p.read("cursor", &out.Cursor)
		return &mcp.ListResourceTemplatesRequest{Session: s, Extra: x, Params: out}
	},
	"tasks/get":    taskRequest,
	"tasks/update": taskRequest,
	"tasks/cancel": taskRequest,
}

// taskRequest makes a request of the tasks extension.
func taskRequest(s *mcp.ServerSession, x *mcp.RequestExtra, p *params) mcp.Request {
	out := &tasks.Params{ParamsBase: mcp.ParamsBase{Meta: p.meta()}}
	p.read("taskId", &out.TaskID)
	p.read("inputResponses", &out.InputResponses)
	return &tasks.Request{Session: s, Extra: x, Params: out}
}

// params reads the parameters of a message and keeps the first fault.
type params struct {
	message *protocol.Message
	fault   *jsonrpc.Error
}

// read decodes a parameter into v, which stays as it is when there is none.
func (p *params) read(name string, v any) {
	raw, ok := p.message.Params[name]
	if !ok || json.Unmarshal(raw, v) == nil || p.fault != nil {
		return
	}
	p.refuse(name)
}

func (p *params) refuse(name string) {
	p.fault = (&refusal{
		protocol.CodeInvalidParams, "params." + name + " is not of the type that the method takes",
		protocol.ErrorData{Field: name, Reason: "type"},
	}).wireError("")
}

// meta returns params._meta as the SDK would. Numbers of the progress token
// stay exact, because the token goes back to the client.
func (p *params) meta() mcp.Meta {
	out := make(mcp.Meta, len(p.message.Meta))
	for key, raw := range p.message.Meta {
		switch {
		case raw[0] == '"':
			out[key] = p.message.MetaString(key)
		case string(raw) == "{}":
			out[key] = map[string]any{}
		default:
			var v any
			_ = json.Unmarshal(raw, &v) // a part of valid JSON
			if _, number := v.(float64); number && key == "progressToken" {
				v = json.Number(raw)
			}
			out[key] = v
		}
	}
	p.checkClient(out)
	return out
}

// checkClient applies to the client's own description what the SDK does when
// it reads a message: its accessors drop what they cannot decode.
func (p *params) checkClient(meta mcp.Meta) {
	if info, ok := meta[protocol.MetaClientInfo]; ok && !describes(info, p.message.Meta[protocol.MetaClientInfo]) {
		p.refuse("_meta." + protocol.MetaClientInfo)
	}
	raw := p.message.Meta[protocol.MetaCapabilities]
	if string(raw) != "{}" && json.Unmarshal(raw, &mcp.ClientCapabilities{}) != nil {
		p.refuse("_meta." + protocol.MetaCapabilities)
	}
}

// describes reports whether v, decoded from raw, is an implementation.
func describes(v any, raw json.RawMessage) bool {
	info, ok := v.(map[string]any)
	for _, member := range info {
		if _, text := member.(string); !text {
			// Not just names: let the SDK's type decide.
			return ok && json.Unmarshal(raw, &mcp.Implementation{}) == nil
		}
	}
	return ok
}

// direct calls the server's middleware and dispatch.
func (e *Engine) direct(ctx context.Context, f *call.Facts, m *protocol.Message,
	build func(*mcp.ServerSession, *mcp.RequestExtra, *params) mcp.Request,
) (json.RawMessage, *jsonrpc.Error) {
	p := &params{message: m}
	request := build(e.session, &mcp.RequestExtra{Header: f.Header}, p)
	if p.fault != nil {
		return nil, p.fault
	}
	res, err := e.receive(call.NewContext(ctx, f), m.Method, request)
	if err != nil {
		return nil, e.asWireError(ctx, f, err)
	}
	raw, err := e.encodeResult(res)
	if err != nil {
		return nil, e.asWireError(ctx, f, err)
	}
	return raw, nil
}

// encodeResult returns the bytes of a result that says who the server is.
func (e *Engine) encodeResult(res mcp.Result) (json.RawMessage, error) {
	if r, ok := res.(*mcp.CallToolResult); ok && len(r.Meta) == 0 && r.InputRequests == nil && r.RequestState == "" {
		return e.encodeCall(r)
	}
	complete(res)
	raw, err := protocol.Encode(res)
	if err != nil {
		return nil, err
	}
	if meta := res.GetMeta(); len(meta) > 0 {
		if _, ok := meta[protocol.MetaServerInfo]; ok {
			return raw, nil
		}
		all := maps.Clone(meta)
		all[protocol.MetaServerInfo] = e.cfg.Info
		value, err := protocol.Encode(all)
		if err != nil {
			return nil, err
		}
		return withMember(raw, value, "_meta")
	}
	out := make([]byte, 0, len(raw)+len(e.meta)+16)
	out = append(out, `{"_meta":`...)
	out = append(out, e.meta...)
	if rest := bytes.TrimPrefix(raw, []byte("{")); len(rest) > 1 {
		out = append(append(out, ','), rest...)
	} else {
		out = append(out, '}')
	}
	return out, nil
}

// encodeCall encodes the result of a tool that has answered. The SDK's own
// methods encode each text three times over, because marshalers nest.
func (e *Engine) encodeCall(r *mcp.CallToolResult) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	put := func(v any) error {
		if err := enc.Encode(v); err != nil {
			return err
		}
		out.Truncate(out.Len() - 1) // the newline
		return nil
	}
	size := len(e.meta) + 128
	for _, content := range r.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			size += len(text.Text) + 64
		}
	}
	out.Grow(size)
	out.WriteString(`{"_meta":`)
	out.Write(e.meta)
	out.WriteString(`,"content":[`)
	for i, content := range r.Content {
		if i > 0 {
			out.WriteByte(',')
		}
		text, ok := content.(*mcp.TextContent)
		if !ok || text.Meta != nil || text.Annotations != nil {
			if err := put(content); err != nil {
				return nil, err
			}
			continue
		}
		out.WriteString(`{"type":"text","text":`)
		if err := put(text.Text); err != nil {
			return nil, err
		}
		out.WriteByte('}')
	}
	out.WriteByte(']')
	if r.StructuredContent != nil {
		out.WriteString(`,"structuredContent":`)
		if err := put(r.StructuredContent); err != nil {
			return nil, err
		}
	}
	if r.IsError {
		out.WriteString(`,"isError":true`)
	}
	out.WriteString(`,"resultType":"complete"}`)
	return out.Bytes(), nil
}

// complete sets the type of the results whose type the SDK sets behind its
// middleware. Those of handlers have it already.
func complete(res mcp.Result) {
	const kind = "complete"
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		r.ResultType = kind
	case *mcp.ListPromptsResult:
		r.ResultType = kind
	case *mcp.ListResourcesResult:
		r.ResultType = kind
	case *mcp.ListResourceTemplatesResult:
		r.ResultType = kind
	}
}
