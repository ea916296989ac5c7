// What a deployment is in answers.

import { Nullable, Time, Type, Words } from '../../core/schema.ts'
import { healths, serviceStatuses, statuses } from './observe.ts'

const Service = Type.Object({ name: Type.String(), status: Words(serviceStatuses), health: Words(healths) })

const base = {
  name: Type.String(),
  path: Type.String(),
  status: Words(statuses),
  created_at: Time(),
  updated_at: Time(),
  revision: Type.String({ description: 'Changes with the files, not with the live state; `If-Match` compares it' }),
  domains: Type.Array(Type.String()),
}

export const Deployment = Type.Object({ ...base, services: Type.Array(Service) })

const Port = Type.Object({
  host_ip: Nullable(Type.String()),
  host_port: Nullable(Type.Integer()),
  container_port: Type.Integer(),
  protocol: Type.String(),
})

export const DeploymentDetail = Type.Object({
  ...base,
  services: Type.Array(
    Type.Object({
      ...Service.properties,
      image: Type.String(),
      container_ids: Type.Array(Type.String()),
      ports: Type.Array(Port),
      replicas: Type.Integer(),
      in_sync: Type.Boolean({ description: 'False when the running container differs from the file' }),
    }),
  ),
  compose_file: Type.String(),
  compose_content: Type.String(),
  env_vars: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
  error: Nullable(Type.String()),
})
