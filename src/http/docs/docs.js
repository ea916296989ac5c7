// Logs in where the agent asks for it, then shows the OpenAPI document with the token set for trying things out.

const form = document.getElementById('login')
const error = document.getElementById('error')

async function documentWith(token) {
  const answer = await fetch('/api/openapi.json', { headers: token ? { authorization: `Bearer ${token}` } : {} })
  if (!answer.ok) throw new Error((await answer.json()).error)
  return answer.json()
}

async function show(token) {
  const spec = await documentWith(token)
  form.hidden = true
  window.SwaggerUIBundle({
    spec,
    dom_id: '#viewer',
    docExpansion: 'none',
    filter: true,
    defaultModelsExpandDepth: 0,
    requestInterceptor: request => {
      if (token) request.headers.authorization = `Bearer ${token}`
      return request
    },
  })
}

form.addEventListener('submit', async event => {
  event.preventDefault()
  error.textContent = ''
  try {
    const answer = await fetch('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ api_key: document.getElementById('key').value }),
    })
    const body = await answer.json()
    if (!answer.ok) throw new Error(body.error)
    await show(body.token)
  } catch (failure) {
    error.textContent = failure.message
  }
})

const { enabled } = await (await fetch('/api/auth/status')).json()
if (enabled) form.hidden = false
else await show()
