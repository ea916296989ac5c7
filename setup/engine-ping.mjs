// Says whether a container engine answers: its address and exit code 0, or why none does and exit code 1.
import http from 'node:http'

const chosen = process.env.FAIRLEAD_ENGINE_SOCKET || process.env.DOCKER_HOST
const runtime = process.env.XDG_RUNTIME_DIR
const usual = ['/var/run/docker.sock', '/run/podman/podman.sock', ...(runtime ? [`${runtime}/podman/podman.sock`] : [])]
const reasons = []
for (const address of chosen ? [chosen] : usual) {
  const reason = await ping(address)
  if (!reason) {
    console.log(address.startsWith('/') ? `unix://${address}` : address)
    process.exit(0)
  }
  reasons.push(reason)
}
console.log(reasons.find(reason => reason.includes('permission')) ?? reasons[0])
process.exit(1)

// An address that needs more than a plain connection (ssh, TLS) is taken on trust: the agent itself will say what is wrong with it.
function ping(address) {
  const path = address.startsWith('/') ? address : address.match(/^unix:\/\/(.*)/)?.[1]
  const tcp = address.match(/^(?:tcp|http):\/\/(.*)/)?.[1]
  if (!path && (!tcp || process.env.DOCKER_TLS_VERIFY)) return undefined
  return new Promise(resolve => {
    const place = path ? { socketPath: path } : { host: tcp.split(':')[0], port: tcp.split(':')[1] ?? 2375 }
    const request = http.get({ ...place, path: '/_ping', timeout: 3000, headers: { host: 'engine' } }, answer => {
      answer.resume()
      resolve(answer.statusCode === 200 ? undefined : `${address} answers ${answer.statusCode}`)
    })
    request.on('timeout', () => request.destroy(new Error('no answer in 3 s')))
    request.on('error', error => resolve(`${address}: ${sentence(error)}`))
  })
}

function sentence(error) {
  const known = { ENOENT: 'does not exist', EACCES: 'no permission', ECONNREFUSED: 'nothing listens there' }
  return known[error.code] ?? error.message
}
