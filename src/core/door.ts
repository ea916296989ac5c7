// The one door through which an operation happens: permission, validation, scope, lock, decide, plan or perform, reply.

import { randomBytes } from 'node:crypto'
import type { Database } from '../store/database.ts'
import type { Vault } from '../store/vault.ts'
import { type Answer, envelope, redactAnswer } from './answer.ts'
import { type AskClass, askClass } from './ask.ts'
import { Audit } from './audit.ts'
import { type Call, deploymentOf, refusedId, text } from './call.ts'
import { canonical, etagOf, matches } from './canonical.ts'
import type { EventBus } from './event.ts'
import { asFailure, Failure, fail } from './failure.ts'
import { Claim, Idempotency } from './idempotency.ts'
import { type Held, Locks } from './lock.ts'
import {
  type ApplyOperation,
  type Ask,
  type Command,
  type Download,
  type DownloadOperation,
  type FollowOperation,
  type Operation,
  type Query,
  type ReaderFactories,
  readInput,
  Streamed,
} from './operation.ts'
import { type Actor, isAdministrator, requireAccess, requireScope, type Scope, sees } from './permission.ts'
import { actorOf, type FileSeen, type PlanRow, Plans } from './plan.ts'
import { isRecordStep } from './record.ts'
import { type Run, Runs, type StoredStep } from './run.ts'
import { Runner, storeFailure, type Undone } from './runner.ts'
import { isValid, redact, validationErrors } from './schema.ts'
import { Kinds, type Results, type Step, type World } from './step.ts'

export type { Answer, Call }

export interface DoorParts {
  db: Database
  vault: Vault
  operations: readonly Operation[]
  kinds: readonly unknown[]
  world: World
  readers: ReaderFactories
  events: EventBus
  planLifetimeSeconds: () => number
  /** The same actor with the rights he has now. */
  refresh: (actor: Actor) => Actor
  report: (message: string, details: object) => void
  /** How long a request waits for what another change holds. */
  lockLimitMs?: number
  /** In tests every answer is checked against its schema. */
  checkAnswers: boolean
}

const LOCK_LIMIT_MS = 10_000
/** Nobody waits for the answer of a job. */
const JOB_LOCK_LIMIT_MS = 3_600_000

export class Door {
  readonly operations: ReadonlyMap<string, Operation>
  readonly plans: Plans
  readonly runs: Runs
  readonly kinds: Kinds
  readonly #parts: DoorParts
  readonly #audit: Audit
  readonly #locks = new Locks()
  readonly #idempotency: Idempotency
  readonly #runner: Runner
  readonly #asks: AskClass
  readonly #questions: ReadonlyMap<string, Query>
  /** Failures whose audit event is written. */
  readonly #audited = new WeakSet<Failure>()
  readonly #active = new Map<string, { cancel: AbortController; ended: Promise<void> }>()
  #closing = false

  constructor(parts: DoorParts) {
    this.#parts = parts
    this.operations = new Map(parts.operations.map(operation => [operation.id, operation]))
    this.plans = new Plans(parts.db, parts.vault, parts.planLifetimeSeconds)
    this.runs = new Runs(parts.db, parts.vault)
    this.kinds = new Kinds(parts.kinds)
    this.#audit = new Audit(parts.db)
    this.#idempotency = new Idempotency(parts.db, parts.vault)
    const { db, world, report } = parts
    this.#runner = new Runner({ db, world, report, runs: this.runs, kinds: this.kinds })
    this.#asks = askClass(parts.readers)
    const questions = parts.operations.filter(operation => operation.kind === 'query')
    this.#questions = new Map(questions.filter(({ http }) => http.method === 'GET').map(one => [one.http.path, one]))
  }

  async answer(operation: Query | Command | ApplyOperation, call: Call): Promise<Answer> {
    if (operation.kind === 'query') return this.question(operation, call)
    const startedAt = performance.now()
    let planned: PlanRow | undefined
    const behind = () => (planned && this.operations.get(planned.operation)) ?? operation
    try {
      const input = this.#admit(operation, call)
      if (call.plan && (operation.kind === 'apply' || operation.plannable === false)) {
        fail('VALIDATION_FAILED', 'This operation has no plan mode: it changes nothing that could be previewed.', [
          { path: 'plan', message: 'is not possible here' },
        ])
      }
      return await this.#once(call, behind, async claim => {
        if (operation.kind === 'command') return this.#change(operation, call, input, startedAt, claim)
        planned = this.#visiblePlan(call.actor, operation.plan(input as never))
        return this.#applyPlan(planned, call, startedAt, claim)
      })
    } catch (thrown) {
      const failure = storeFailure(thrown)
      this.#auditRefusal(behind() as Command | ApplyOperation, call, failure, startedAt, planned)
      throw failure
    }
  }

  /** A question is answered at once when what it reads is at hand. */
  question(operation: Query, call: Call): Answer | Promise<Answer> {
    const input = this.#admit(operation, call)
    const output = operation.read(this.#askOnly(call.actor), input as never)
    return output instanceof Promise
      ? output.then(found => this.#answered(operation, found))
      : this.#answered(operation, output)
  }

  /** A change that was refused before it came here, for a body that is no JSON, say. */
  refused(operation: Command | ApplyOperation, call: Call, failure: Failure, startedAt: number): void {
    this.#auditRefusal(operation, call, failure, startedAt)
  }

  /** Opens a download after the same checks. */
  async download(operation: DownloadOperation, call: Call): Promise<Download> {
    const input = this.#admit(operation, call)
    return operation.open(this.#ask(call.actor, []), input as never)
  }

  /** Opens a follow; the caller ends it through the signal. */
  async follow(operation: FollowOperation, call: Call, signal: AbortSignal): Promise<AsyncIterable<object>> {
    const input = this.#admit(operation, call)
    return operation.open(this.#ask(call.actor, [], undefined, signal), input as never)
  }

  /** The checks alone, for a follow whose caller's rights may have changed. */
  admits(operation: FollowOperation, call: Call): boolean {
    try {
      this.#admit(operation, call)
      return true
    } catch {
      return false
    }
  }

  /** Ends a run and waits until what it had done is undone. False when it came too late. */
  async cancel(id: string, reason: string): Promise<boolean> {
    const active = this.#active.get(id)
    if (!active) return false
    active.cancel.abort(new Failure('CONFLICT', reason))
    await active.ended
    return this.runs.row(id)?.status !== 'completed'
  }

  isActive(id: string): boolean {
    return this.#active.has(id)
  }

  hasUnfinished(): boolean {
    return this.runs.unfinished().length > 0
  }

  /** At start-up: no run has a living owner. Each is finished or undone, and reported. */
  async recover(): Promise<number> {
    const left = this.runs.unfinished()
    for (const { run, stored } of left) await this.#recoverOne(run, stored)
    this.plans.interrupted()
    return left.length
  }

  /** Waits for the runs under way, and cancels those that take longer. From here on nothing new is begun. */
  async close(limitMs: number): Promise<void> {
    this.#closing = true
    const all = Promise.all([...this.#active.values()].map(one => one.ended))
    const inTime = await Promise.race([
      all.then(() => true),
      new Promise<false>(done => setTimeout(done, limitMs, false).unref()),
    ])
    if (inTime) return
    for (const id of this.#active.keys()) void this.cancel(id, 'The agent is being stopped.')
    await all
  }

  /** Forgets what has served its time. */
  sweep(keepRunsSince: Date): void {
    this.plans.sweep()
    this.#idempotency.sweep()
    this.runs.forget(keepRunsSince)
  }

  /** A plan is seen by its maker, by administrators, and by those who may read its resource. */
  seesPlan(actor: Actor, row: PlanRow): boolean {
    if (isAdministrator(actor)) return true
    const maker = JSON.parse(row.created_by) as Pick<Actor, 'type' | 'id'>
    if (maker.type === actor.type && maker.id === actor.id) return true
    const operation = this.operations.get(row.operation)
    if (operation?.kind !== 'command' || operation.personal || !mayRead(actor, operation)) return false
    const deployments = JSON.parse(row.deployments) as string[]
    // A deployment that does not exist yet is in no scope.
    const made = row.resource_type === 'deployment' ? row.resource_id : null
    return [...deployments, made].every(name => sees(actor, name))
  }

  /** What lists and details say, for actors who are not in the middle of a call. */
  askAs(actor: Actor): Ask {
    return this.#ask(actor, [])
  }

  #answered(operation: Query, output: unknown): Answer {
    this.#check(operation, output)
    const revision = operation.revision?.(output as never)
    return { status: 200, body: envelope(operation, output, 'OK'), revision }
  }

  #admit(operation: Operation, call: Call): unknown {
    requireAccess(call.actor, operation.permission)
    const input = readInput(operation, call.raw)
    const scopes = operation.scope?.(input as never)
    if (scopes) {
      call.deployment = scopes[0]?.deployment
      requireScope(call.actor, scopes)
    }
    operation.admit?.(call.actor, input as never)
    return input
  }

  async #recoverOne(run: Run, stored: StoredStep[]): Promise<void> {
    const startedAt = performance.now()
    const report = (finished: boolean, undone: Undone): undefined => {
      const words = interruptedWords(finished, undone)
      if (run.planId && finished) this.plans.applied(run.planId)
      if (run.planId && !finished) this.plans.release(run.planId, words)
      if (run.key && finished) this.#idempotency.carriedOut(run.key)
      this.#audit.write({
        actor: run.actor,
        action: run.action,
        resource: run.resource,
        status: finished ? 200 : 500,
        startedAt,
        origin: run.origin,
        details: {
          run: run.id,
          interrupted: true,
          message: words,
          ...(undone.failed.length > 0 ? { not_undone: undone.failed } : {}),
        },
      })
      const deployment = run.deployment === null ? {} : { deployment: run.deployment }
      this.#parts.report('a run was interrupted by the last stop', {
        run: run.id,
        action: run.action,
        outcome: words,
        ...deployment,
      })
    }
    const finishing = () => report(true, { failed: [], untouched: false })
    const { finished, undone } = await this.#runner.recover(run, stored, finishing).catch(thrown => ({
      finished: false,
      undone: { failed: [{ step: run.action, error: asFailure(thrown).message }], untouched: false },
    }))
    if (finished) return
    this.#parts.db.transaction(() => {
      report(false, undone)
      this.runs.finish(run.id, 'failed', interruptedWords(false, undone))
    })
  }

  /** Around every mutation: the idempotency key, whose first answer is kept. Without a caller there is nothing to keep it for. */
  async #once(
    call: Call,
    operation: () => Operation,
    work: (claim: Claim | undefined) => Promise<Answer>,
  ): Promise<Answer> {
    if (call.idempotencyKey === undefined || operation().permission === 'public') return work(undefined)
    const { type, id, name } = call.actor
    const scope = canonical([type, id ?? name, call.method, call.path, call.idempotencyKey])
    const kept = this.#idempotency.begin(scope, canonical([call.raw.query, call.raw.body, call.plan ?? false]))
    if (!(kept instanceof Claim)) return { status: kept.status, body: kept.body as object }
    try {
      const answer = await work(kept)
      this.#keep(kept, answer.status, call.plan ? answer.body : redactAnswer(operation(), answer.body))
      return answer
    } catch (thrown) {
      const failure = storeFailure(thrown)
      if (failure.status < 500 && failure.code !== 'BUSY') this.#keep(kept, failure.status, failure.body())
      throw failure
    } finally {
      kept.release()
    }
  }

  /** What was done stays done and is answered, also when its answer cannot be kept. */
  #keep(claim: Claim, status: number, body: object): void {
    try {
      claim.keep(status, body)
    } catch (thrown) {
      this.#parts.report('the answer of an idempotency key could not be kept', { cause: String(thrown) })
    }
  }

  async #change(
    command: Command,
    call: Call,
    input: unknown,
    startedAt: number,
    claim: Claim | undefined,
  ): Promise<Answer> {
    if (call.plan) return this.#makePlan(command, call, input, startedAt)
    return this.#carryOut({
      command,
      call,
      input,
      startedAt,
      claim,
      seed: randomBytes(32),
      planned: undefined,
      run: Runs.newId(),
    })
  }

  /** Now, or as a job. The bytes of an upload come with the request, so it is never one. */
  async #carryOut(change: Changing): Promise<Answer> {
    const { command, call } = change
    await this.#ownerOf(change)
    if (this.#closing) fail('SERVICE_UNAVAILABLE', 'The agent is being stopped. Try again when it is back.')
    if (!call.respondAsync || command.http.upload) return this.#perform(change, false)
    // Refusals come at once, as in a plan; the work itself then decides again under its locks.
    await this.#requireMatch(command, call)
    await this.#decideAsPlanned(change)
    return this.#inBackground({ ...change, claim: undefined, call: { ...call, onEvent: undefined } }, change.claim)
  }

  #inBackground(change: Changing, claim: Claim | undefined): Answer {
    const { command } = change
    const answer = { status: 201, body: { job_id: change.run, message: `${command.summary}: started as a job.` } }
    this.#parts.db.transaction(() => {
      this.runs.insert(this.#runOf(change, [], true), 'pending')
      claim?.keep(answer.status, answer.body)
    })
    const cancel = new AbortController()
    const keep = (status: number, body: object) => this.runs.owe(() => this.runs.keepAnswer(change.run, status, body))
    const ended = this.#perform(change, true, cancel)
      .then(
        ({ status, body }) => keep(status, redactAnswer(command, body)),
        thrown => {
          const failure = this.#jobFailed(change, thrown, cancel.signal)
          keep(failure.status, failure.body())
        },
      )
      .catch(thrown =>
        this.#parts.report('the end of a job could not be kept', { run: change.run, cause: String(thrown) }),
      )
      .finally(() => this.#active.delete(change.run))
    this.#active.set(change.run, { cancel, ended })
    return answer
  }

  #jobFailed(change: Changing, thrown: unknown, signal: AbortSignal): Failure {
    const { command, call, run } = change
    const failure = this.#releasePlan(change, thrown)
    this.runs.owe(() => {
      if (this.runs.row(run)?.completed_at !== null) return
      this.runs.finish(run, signal.aborted ? 'cancelled' : 'failed', failure.message)
    })
    this.#auditRefusal(command, call, failure, change.startedAt, change.planned)
    if (failure.code === 'INTERNAL') this.#parts.report('a job failed', { run, cause: String(failure.cause) })
    return failure
  }

  /** Lock, decide, perform, reply. */
  async #perform(change: Changing, isJob: boolean, cancel = new AbortController()): Promise<Answer> {
    const { command, call, input } = change
    const ended = Promise.withResolvers<void>()
    if (!isJob) this.#active.set(change.run, { cancel, ended: ended.promise })
    let held: Held | undefined
    try {
      const limit = isJob ? JOB_LOCK_LIMIT_MS : (this.#parts.lockLimitMs ?? LOCK_LIMIT_MS)
      const holder = `${command.action} (${change.run})`
      const locks = await command.locks?.(input as never, this.#ask(call.actor, []))
      held = await this.#locks.take(locks ?? [], holder, limit, cancel.signal)
      await this.#requireMatch(command, call)
      const decided = await this.#decideAsPlanned(change, cancel.signal)
      change.begun = true
      const run = this.#runOf(change, decided.steps, isJob)
      const results = await this.#runner
        .perform(run, {
          signal: cancel.signal,
          upload: call.upload,
          ...(call.onEvent ? { onEvent: call.onEvent } : {}),
          commit: results => this.#commit(change, decided, results),
        })
        .catch(thrown => {
          const { id, action, deployment } = run
          this.#parts.events.emit('run.finished', { id, action, deployment, ok: false })
          throw thrown
        })
      this.#tellOf(run)
      if (change.settled) throw change.settled
      return await this.#reply(change, decided.actor, results).catch(thrown => this.#failedAfterwards(thrown))
    } finally {
      held?.release()
      ended.resolve()
      if (!isJob) this.#active.delete(change.run)
    }
  }

  /** What was done is on record already; that it could not be told is not another event. */
  #failedAfterwards(thrown: unknown): never {
    const failure = storeFailure(thrown)
    this.#audited.add(failure)
    throw failure
  }

  async #decideAsPlanned(change: Changing, signal?: AbortSignal): Promise<Decision> {
    const decided = await this.#decide(change, signal).catch(thrown => this.#refusedAgain(change, thrown))
    if (change.planned) this.plans.requireSame(change.planned, decided.steps, decided.changes, decided.files)
    return decided
  }

  async #decide(change: Changing, signal?: AbortSignal): Promise<Decision> {
    const { command, call, input, seed } = change
    const files: FileSeen[] = []
    const decided = await command.decide(this.#ask(call.actor, files, seed, signal), input as never)
    const steps = Array.isArray(decided) ? decided : decided.steps
    this.#runner.check(steps)
    return {
      steps,
      actor: Array.isArray(decided) ? call.actor : decided.actor,
      changes: this.kinds.describe(steps),
      files,
    }
  }

  /** What could be planned and is refused now: the world has moved, so the plan is stale. */
  #refusedAgain(change: Changing, thrown: unknown): never {
    const failure = storeFailure(thrown)
    if (!change.planned || failure.status >= 500 || failure.code === 'FORBIDDEN') throw failure
    this.plans.obsolete(change.planned.id, [
      { type: change.planned.resource_type, id: change.planned.resource_id, reason: failure.message },
    ])
  }

  #commit(change: Changing, decided: Decision, results: Results): Failure | undefined {
    const { command, call, input, planned, claim } = change
    const failure = command.settled?.(results)
    this.#audit.write({
      actor: decided.actor,
      action: command.action,
      resource: { type: command.resource.type, id: text(command.resource.id?.(input as never, results)) },
      status: failure?.status ?? command.http.status ?? 200,
      startedAt: change.startedAt,
      origin: call.origin,
      details: {
        changes: decided.changes,
        ...(planned ? { plan: planned.id } : {}),
        ...(failure ? { code: failure.code, error: failure.message } : {}),
      },
    })
    if (planned) this.plans.applied(planned.id)
    if (failure) this.#audited.add(failure)
    else claim?.done()
    change.settled = failure
    return failure
  }

  #tellOf(run: Run): void {
    const areas = new Set(run.steps.filter(isRecordStep).map(step => (step.data as { area: string }).area))
    if (areas.size > 0) this.#parts.events.emit('records.changed', { areas })
    const { id, action, deployment } = run
    this.#parts.events.emit('run.finished', { id, action, deployment, ok: true })
  }

  async #reply(change: Changing, actor: Actor, results: Results): Promise<Answer> {
    const { command, input, seed, planned } = change
    const now = actor.type === 'system' ? actor : this.#parts.refresh(actor)
    const output = (await command.reply?.(this.#ask(now, [], seed), input as never, results)) ?? null
    this.#check(command, output)
    const body = envelope(command, output, command.message ?? `${command.summary}: done.`)
    if (planned) Object.assign(body, { plan: this.plans.shown(this.plans.row(planned.id)) })
    return { status: command.http.status ?? 200, body }
  }

  async #makePlan(command: Command, call: Call, input: unknown, startedAt: number): Promise<Answer> {
    await this.#requireMatch(command, call)
    const change: Changing = {
      command,
      call,
      input,
      startedAt,
      claim: undefined,
      seed: randomBytes(32),
      planned: undefined,
      run: Runs.newId(),
    }
    const decided = await this.#decide(change)
    const { params, query, body } = call.raw
    const scopes: Scope[] = command.scope?.(input as never) ?? []
    const owner = await this.#ownerOf(change)
    const shownInput = redact(command.input, { ...query, ...(body as object) }) as Record<string, unknown>
    const pick = (source: object | undefined) =>
      Object.fromEntries(Object.keys(source ?? {}).map(key => [key, shownInput[key]]))
    return this.#parts.db.transaction(() => {
      const plan = this.plans.create({
        id: change.run,
        command,
        actor: call.actor,
        resourceId: text(command.resource.id?.(input as never, {})),
        deployments: [...scopes.map(scope => scope.deployment), ...(owner === null ? [] : [owner])],
        request: {
          method: call.method,
          path: call.path,
          query: pick(query),
          body: body === undefined ? null : pick(body as object),
        },
        sealed: { raw: { params, query, body }, seed: change.seed.toString('base64'), url: call.path },
        steps: decided.steps,
        changes: decided.changes,
        files: decided.files,
      })
      this.#audit.write({
        actor: call.actor,
        action: 'plan.create',
        resource: { type: 'plan', id: plan.id },
        status: 200,
        startedAt,
        origin: call.origin,
        details: { action: command.action, resource: plan.resource, summary: plan.summary },
      })
      const total = decided.changes.length
      const message =
        total === 0 ? 'Nothing would change.' : `${total} change${total === 1 ? '' : 's'} planned; nothing was done.`
      return { status: 200, body: { data: plan, message } }
    })
  }

  async #applyPlan(row: PlanRow, call: Call, startedAt: number, claim: Claim | undefined): Promise<Answer> {
    const command = this.operations.get(row.operation)
    if (command?.kind !== 'command')
      return fail('PLAN_STALE', 'The operation of this plan no longer exists. Make a new plan.')
    requireAccess(call.actor, command.permission)
    if (command.http.upload && !call.upload) {
      fail(
        'PLAN_NOT_APPLICABLE',
        'The bytes of an upload are not kept with its plan. Send the upload itself, without `plan=true`.',
      )
    }
    this.plans.take(row, call.actor)
    const sealed = this.plans.unsealed(row)
    const own: Call = { ...call, raw: sealed.raw, ifMatch: undefined }
    const change: Changing = {
      command,
      call: own,
      input: {},
      startedAt,
      claim,
      seed: Buffer.from(sealed.seed, 'base64'),
      planned: row,
      run: Runs.newId(),
    }
    try {
      change.input = this.#admit(command, own)
      call.deployment = own.deployment
      return await this.#carryOut(change)
    } catch (thrown) {
      throw this.#releasePlan(change, thrown)
    }
  }

  /** A refusal before the first step leaves the plan as it was; a failure in the middle ends it. */
  #releasePlan(change: Changing, thrown: unknown): Failure {
    const failure = storeFailure(thrown)
    const { planned, begun } = change
    if (planned) this.runs.owe(() => this.plans.release(planned.id, begun ? failure.message : null))
    return failure
  }

  #visiblePlan(actor: Actor, id: string): PlanRow {
    const row = this.plans.row(id)
    return this.seesPlan(actor, row) ? row : fail('NOT_FOUND', `There is no plan "${id}".`)
  }

  /** The version of a record is the ETag of the question at the same path. */
  async #requireMatch(command: Command, call: Call): Promise<void> {
    if (call.ifMatch === undefined) return
    const question = this.#questions.get(command.http.path)
    const refuse = (why: string): never =>
      fail('PRECONDITION_FAILED', `If-Match does not hold: ${why}. Read it again and repeat the change.`)
    if (!question) return call.ifMatch.trim() === '*' ? undefined : refuse('this has no version to compare with')
    const query = Object.fromEntries(Object.entries(call.raw.query).filter(([name]) => question.fields.query.has(name)))
    const { body, revision } = await this.question(question, {
      ...call,
      raw: { params: call.raw.params, query, body: undefined },
    })
    if (!matches(call.ifMatch, etagOf(JSON.stringify(body), revision))) refuse('it was changed meanwhile')
  }

  #runOf(change: Changing, steps: Step[], isJob: boolean): Run {
    const { command, call, input } = change
    return {
      id: change.run,
      operation: command.id,
      action: command.action,
      resource: { type: command.resource.type, id: text(command.resource.id?.(input as never, {})) },
      deployment: change.owner ?? deploymentOf(command, input),
      actor: actorOf(call.actor),
      origin: call.origin,
      isJob,
      planId: change.planned?.id ?? null,
      key: change.claim?.kept,
      steps,
    }
  }

  /** Looked up once, before anything is done: afterwards it may be gone. */
  async #ownerOf(change: Changing): Promise<string | null> {
    const { command, call, input } = change
    change.owner ??= (await command.belongs?.(this.#ask(call.actor, []), input as never)) ?? null
    if (change.owner !== null) call.deployment = change.owner
    return change.owner
  }

  #auditRefusal(
    operation: Command | ApplyOperation,
    call: Call,
    failure: Failure,
    startedAt: number,
    planned?: PlanRow,
  ): void {
    if (this.#audited.has(failure)) return
    this.#audited.add(failure)
    const command = operation.kind === 'command' ? operation : undefined
    const guessed = planned ? planned.resource_id : refusedId(command, call)
    try {
      this.#audit.write({
        actor: call.actor,
        action: command?.action ?? 'plan.apply',
        resource: { type: command?.resource.type ?? 'plan', id: guessed },
        status: failure.status,
        startedAt,
        origin: call.origin,
        details: {
          code: failure.code,
          error: failure.message,
          ...(planned ? { plan: planned.id } : {}),
          ...(call.plan ? { planned: true } : {}),
        },
      })
    } catch (thrown) {
      this.#parts.report('an audit event could not be written', { action: command?.action, cause: String(thrown) })
    }
  }

  #ask(actor: Actor, files: FileSeen[], seed?: Buffer, signal?: AbortSignal): Ask {
    const noteFile = (path: string, sha256: string | null) => {
      if (!files.some(file => file.path === path)) files.push({ path, sha256 })
    }
    return new this.#asks({ actor, noteFile }, seed, signal)
  }

  /** For a question, of which nobody wants to know the files. */
  #askOnly(actor: Actor): Ask {
    return new this.#asks({ actor, noteFile: () => {} })
  }

  #check(operation: Query | Command, output: unknown): void {
    if (!this.#parts.checkAnswers) return
    const plain = JSON.parse(JSON.stringify(output ?? null))
    if (output instanceof Streamed || isValid(operation.output, plain)) return
    const [fault] = validationErrors(operation.output, plain)
    throw new Error(`${operation.id} answered outside its schema: ${fault?.path} ${fault?.message}`)
  }
}

interface Changing {
  command: Command
  call: Call
  input: unknown
  startedAt: number
  claim: Claim | undefined
  seed: Buffer
  planned: PlanRow | undefined
  run: string
  begun?: boolean
  settled?: Failure | undefined
  /** The deployment that the named thing belongs to, once it was looked up. */
  owner?: string | null
}

interface Decision {
  steps: Step[]
  actor: Actor
  changes: ReturnType<Kinds['describe']>
  files: FileSeen[]
}

function interruptedWords(finished: boolean, { untouched, failed }: Undone): string {
  if (finished) return 'The agent was stopped in the middle; the rest was done at its next start.'
  if (untouched) return 'The agent was stopped in the middle of something that cannot be undone.'
  if (failed.length === 0) return 'The agent was stopped in the middle; what had been done was undone.'
  return `The agent was stopped in the middle; not everything could be undone: ${failed.map(one => one.step).join(', ')}.`
}

function mayRead(actor: Actor, operation: Operation): boolean {
  const { permission } = operation
  if (permission === 'admin') return isAdministrator(actor)
  if (permission === 'public' || permission === 'authenticated') return false
  return actor.permissions.has(permission.replace(':write', ':read') as never)
}
