"""Manual approval from the UI: a job whose launchpad takes the table and yes or no."""

from dagster import Config, JobDefinition, OpExecutionContext, in_process_executor, job, op
from pydantic import Field

from zorder_pipeline.config import PipelineConfig

from .common import APPROVAL_JOB, DeltaSparkResource, told

__all__ = ["HOW", "Answer", "approval_job"]

HOW = f"in the UI: Jobs, {APPROVAL_JOB}, Launchpad; or on the command line: zorder approve"


class Answer(Config):
    """What a person says to a plan that waits."""

    table: str = Field(description="Name of the table in tables.yaml.")
    plan_id: str = Field(default="", description="The plan that is meant; empty for the one that waits.")
    approve: bool = Field(default=True, description="false rejects it.")
    by: str = Field(default="", description="Who says so.")


def approval_job(settings: PipelineConfig) -> JobDefinition:
    """The job that approves or rejects the plan that waits for a table; the table's next run carries it out."""

    @op(name="answer", description="Approves or rejects the plan that waits for a table, as zorder approve does.")
    def _answer(context: OpExecutionContext, config: Answer, zorder_spark: DeltaSparkResource) -> None:
        from zorder_pipeline import pipeline

        with told(context, config.table):
            answered = pipeline.answer_request(
                zorder_spark.session,
                settings.state,
                config.table,
                config.plan_id or None,
                reject=not config.approve,
                by=config.by or "the Dagster UI",
            )
        context.log.info(f"{answered.table}: plan {answered.plan_id} is {answered.status}; its next run acts on it")
        context.add_output_metadata({"table": answered.table, "plan": answered.plan_id, "status": answered.status})

    @job(
        name=APPROVAL_JOB,
        executor_def=in_process_executor,
        description="Approves or rejects the plan that waits for a table (gate.approval in tables.yaml).",
    )
    def _job() -> None:
        _answer()

    return _job
